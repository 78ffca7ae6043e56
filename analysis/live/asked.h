// A command for a running process, put into its ring file (interpose/format/control.h), and what it
// answered.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "interpose/format/ring_file.h"

namespace tprof::live {

// What steps a running process has begun (interpose/format/windows.h), as it last said; count 0: it
// knows of none that the program marks. Throws as below.
struct StepsSeen {
  std::uint64_t count = 0;
  std::uint64_t last_ns = 0;
  std::uint64_t took_ns = 0;
};
StepsSeen steps_seen(const std::filesystem::path& ring);

class Asked {
 public:
  // Throws BadInput where the file is not this user's to write, of another version of tprof, or of
  // a process that is gone; and where another command waits for its answer.
  Asked(const std::filesystem::path& ring, Command command, std::string_view argument);
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked();

  bool answered() const;
  Obeyed answer() const;  // once it is there

 private:
  int fd_ = -1;
  Head* head_ = nullptr;  // of which only `control` is written
  std::uint32_t number_ = 0;
};

}  // namespace tprof::live
