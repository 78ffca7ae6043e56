// What the user runs beside the command of `tprof run`, in a process of its own: the command's
// signals and its end are not its business, and what fails there fails there.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/commands.h"
#include "cli/environment.h"

namespace tprof::cli {

// Of a run without any of it, it does nothing.
class Feeding {
 public:
  // Begins, before the command does.
  Feeding(const Options& o, const fs::path& folder, const std::string& run_id,
          const Launch& launch);
  Feeding(const Feeding&) = delete;
  Feeding& operator=(const Feeding&) = delete;
  ~Feeding();

  // The command has ended and the files of its dead are whole: waits until all have got what there
  // is, and have ended.
  void end();

 private:
  void wait();

  pid_t child_ = -1;
  int tells_ = -1;  // a socket to it
};

}  // namespace tprof::cli
