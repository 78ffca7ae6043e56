// Chooses the steps that PyTorch's profiler is to trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tprof::launch {

// Steps of PyTorch's optimizers, from 1.
struct TorchSteps {
  std::int64_t first = 10;
  std::int64_t last = 12;
};
// Parses "10-12" or "10". Throws BadInput that says what was expected.
TorchSteps torch_steps(std::string_view text);
// Returns the steps that `asked` says, else those of TPROF_SCHEDULE's first window, else the
// default.
TorchSteps torch_steps_of(const std::string& asked, const std::string& schedule);

// Returns what a process is told to do, in the words of libkineto's configuration.
std::string kineto_config(const TorchSteps& steps, const std::filesystem::path& trace);

}  // namespace tprof::launch
