// Runs what the user wants beside the command of `tprof run`, in a process of its own. The
// command's signals and its end don't affect that process, and its failures don't affect us.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/commands.h"
#include "launch/environment.h"

namespace tprof::cli {

// Does nothing in a run without handlers, --on-window and --keep-windows.
class Feeding {
 public:
  // Begins. The command must not have begun yet.
  Feeding(const Options& o, const fs::path& folder, const std::string& run_id,
          const launch::Launch& launch);
  Feeding(const Feeding&) = delete;
  Feeding& operator=(const Feeding&) = delete;
  ~Feeding();

  // Has to be called when the command has ended and the files of its dead processes are whole.
  // Waits until all have got what there is, and have ended.
  void end();

 private:
  void wait();

  pid_t child_ = -1;
  int tells_ = -1;  // a socket to it
};

}  // namespace tprof::cli
