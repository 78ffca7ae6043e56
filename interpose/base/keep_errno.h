// The program's errno: what we ask of the system within its calls must not change it.
#pragma once

#include <cerrno>

namespace tprof {

class [[nodiscard]] KeepErrno {
 public:
  KeepErrno() = default;
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_ = errno;
};

}  // namespace tprof
