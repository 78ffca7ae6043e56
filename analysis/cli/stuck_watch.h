// Watches over the processes of `tprof run`'s command, in a process of its own, which their signals
// and their ends don't affect.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/commands.h"

namespace tprof::cli {

// Watches until it is destroyed. Does nothing in a run without --on-stuck.
class StuckWatch {
 public:
  StuckWatch(const Options& o, const fs::path& folder, const std::string& run_id);
  StuckWatch(const StuckWatch&) = delete;
  StuckWatch& operator=(const StuckWatch&) = delete;
  ~StuckWatch();

 private:
  pid_t child_ = 0;
};

}  // namespace tprof::cli
