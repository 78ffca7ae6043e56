// Watches over the processes of `tprof run`'s command, in a process of its own, which their signals
// and their ends don't affect.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "children/child.h"

namespace tprof::launch {

// Watches until it is destroyed, and runs the command for ranks that hang. Does nothing if the
// command is empty.
class StuckWatch {
 public:
  StuckWatch(const std::string& command, std::chrono::nanoseconds stuck_after,
             const std::filesystem::path& folder, const std::string& run_id);

 private:
  children::Child child_;
};

}  // namespace tprof::launch
