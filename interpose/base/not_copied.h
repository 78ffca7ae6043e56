// A base class for objects that can't be copied.
#pragma once

namespace tprof {

class NotCopied {
 public:
  NotCopied() = default;
  NotCopied(const NotCopied&) = delete;
  NotCopied& operator=(const NotCopied&) = delete;
};

}  // namespace tprof
