// Watches over the processes of `tprof run`'s command, in a process of its own: their signals and
// their ends are not its business.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/commands.h"

namespace tprof::cli {

// Until it goes; of a run without a command for what is stuck it does nothing.
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
