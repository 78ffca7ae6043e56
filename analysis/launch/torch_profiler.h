// Starts PyTorch's own profiler in the processes of `tprof run` without changing the program:
// libkineto asks the daemon named in its environment, which is us.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "children/child.h"
#include "doctor/ask.h"
#include "interpose/base/not_copied.h"
#include "read/folder.h"

namespace tprof::launch {

// Steps of PyTorch's optimizers, from 1.
struct TorchSteps {
  std::int64_t first = 10;
  std::int64_t last = 12;
};
// Parses "10-12" or "10". Throws BadInput with what was expected.
TorchSteps torch_steps(std::string_view text);
// Returns the steps in `asked`, else those of TPROF_SCHEDULE's first window, else the default.
TorchSteps torch_steps_of(const std::string& asked, const std::string& schedule);

// A process's request to the daemon.
struct KinetoRequest {
  std::int32_t pid = 0;
  bool may_trace = false;  // it is not tracing already
};
// Returns the request in a message's bytes, or nullopt if they are anything else. Messages are
// those of dynolog's IPC fabric.
std::optional<KinetoRequest> kineto_request(std::string_view message);
std::string kineto_answer(std::string_view config);

struct TorchTrace {
  std::filesystem::path rank_file;
  std::filesystem::path trace;
};

// Returns the first free name of STEM END, STEM.1 END, ... in a folder.
std::filesystem::path free_name(const std::filesystem::path& folder, const std::string& stem,
                                const std::string& end);

class TorchProfiler : NotCopied {
 public:
  // Answers requests from here on in a separate process, with the steps of torch_steps_of(). If
  // that is impossible, says so and does nothing.
  TorchProfiler(const std::string& steps, const std::filesystem::path& folder);
  ~TorchProfiler();

  // Settings for the command; empty if the user set one of them.
  const doctor::Settings& settings() const { return settings_; }

  // Call this when the command has ended. Moves the traces into the run's folder torch, named by
  // rank, and returns them. If there are none, says why.
  std::vector<TorchTrace> collect(const std::vector<read::TraceFile>& ranks);

 private:
  bool start();  // starts the answering process; false: failed

  std::filesystem::path sockets_;  // empty: nothing is done
  std::filesystem::path traces_;
  TorchSteps steps_;
  doctor::Settings settings_;
  children::Child child_;
};

}  // namespace tprof::launch
