// Puts a command for a running process into its ring file (interpose/format/control.h), and gets
// its answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "interpose/format/ring_file.h"

namespace tprof::control {

// The steps that a running process has begun (interpose/format/windows.h), as it last said. A count
// of 0 means that it knows of none that the program marks. steps_seen() throws as Asked does.
struct StepsSeen {
  std::uint64_t count = 0;
  std::uint64_t last_ns = 0;
  std::uint64_t took_ns = 0;
};
StepsSeen steps_seen(const std::filesystem::path& ring);

class Asked {
 public:
  // Throws BadInput if the file is not this user's to write, of another version of tprof, or of a
  // process that is gone. Also throws if another command waits for its answer.
  Asked(const std::filesystem::path& ring, Command command, std::string_view argument);
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked();

  bool answered() const;
  Obeyed answer() const;  // only valid once it is there

 private:
  int fd_ = -1;
  Head* head_ = nullptr;  // only its `control` is written
  std::uint32_t number_ = 0;
};

}  // namespace tprof::control
