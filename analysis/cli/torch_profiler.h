// Starts PyTorch's own profiler in the processes of `tprof run`, without a line in the program.
// libkineto asks the daemon that its environment names, and that is us.
#pragma once

#include <sys/types.h>

#include <vector>

#include "cli/commands.h"
#include "doctor/ask.h"
#include "launch/torch_steps.h"
#include "read/folder.h"

namespace tprof::cli {

struct TorchTrace {
  fs::path rank_file;
  fs::path trace;
};

// Returns STEM END in a folder, or STEM.N END: the first that is not there yet.
fs::path free_name(const fs::path& folder, const std::string& stem, const std::string& end);

class TorchProfiler {
 public:
  // Answers from here on, in a process of its own. If that is not possible, says so and does
  // nothing.
  TorchProfiler(const Options& o, const fs::path& folder);
  TorchProfiler(const TorchProfiler&) = delete;
  TorchProfiler& operator=(const TorchProfiler&) = delete;
  ~TorchProfiler();

  // Settings for the command. Empty if the user set one of them.
  const doctor::Settings& settings() const { return settings_; }

  // Has to be called when the command has ended. Puts the traces into the folder torch of the run,
  // named by their ranks, and returns them. If there are none, says so, and why.
  std::vector<TorchTrace> collect(const std::vector<read::TraceFile>& ranks);

 private:
  bool start();  // starts the process that answers; false: it does not answer
  void stop();

  fs::path sockets_;  // empty: nothing is done
  fs::path traces_;
  launch::TorchSteps steps_;
  doctor::Settings settings_;
  pid_t child_ = -1;
};

}  // namespace tprof::cli
