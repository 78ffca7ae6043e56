// Which steps PyTorch's profiler is to trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tprof::cli {

// Steps of PyTorch's optimizers, from 1.
struct TorchSteps {
  std::int64_t first = 10;
  std::int64_t last = 12;
};
// "10-12" or "10". Throws BadInput that says what was expected.
TorchSteps torch_steps(std::string_view text);
// Those that `asked` says; else of TPROF_SCHEDULE's first window; else the default.
TorchSteps torch_steps_of(const std::string& asked, const std::string& schedule);

// What a process is told to do, in the words of its configuration.
std::string kineto_config(const TorchSteps& steps, const std::filesystem::path& trace);

}  // namespace tprof::cli
