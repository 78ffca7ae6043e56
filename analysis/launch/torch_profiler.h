// Starts PyTorch's own profiler in the processes of `tprof run`, without a line in the program.
// libkineto asks the daemon that its environment names, and that is us.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "children/child.h"
#include "doctor/ask.h"
#include "launch/torch_steps.h"
#include "read/folder.h"

namespace tprof::launch {

struct TorchTrace {
  std::filesystem::path rank_file;
  std::filesystem::path trace;
};

// Returns STEM END in a folder, or STEM.N END: the first that is not there yet.
std::filesystem::path free_name(const std::filesystem::path& folder, const std::string& stem,
                                const std::string& end);

class TorchProfiler {
 public:
  // Answers from here on, with the steps that are asked for (see torch_steps_of), in a process of
  // its own. If that is not possible, says so and does nothing.
  TorchProfiler(const std::string& steps, const std::filesystem::path& folder);
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

  std::filesystem::path sockets_;  // empty: nothing is done
  std::filesystem::path traces_;
  TorchSteps steps_;
  doctor::Settings settings_;
  children::Child child_;
};

}  // namespace tprof::launch
