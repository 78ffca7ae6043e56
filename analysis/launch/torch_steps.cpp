#include "launch/torch_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "interpose/format/schedule.h"
#include "read/error.h"

namespace tprof::launch {

namespace {
// CUPTI starts in the last step before the window.
constexpr std::int64_t kLeastFirst = 3;
}  // namespace

TorchSteps torch_steps(std::string_view text) {
  TorchSteps steps;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, steps.first);
  auto last = first;
  steps.last = steps.first;
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '-') {
    last = std::from_chars(first.ptr + 1, end, steps.last);
  }
  constexpr std::int64_t kLastStep = 1'000'000'000;
  if (last.ec != std::errc() || last.ptr != end || steps.first < kLeastFirst ||
      steps.last < steps.first || steps.last > kLastStep) {
    throw read::BadInput(fmt::format(
        "--torch-steps: expected steps from {} on, such as 10-12, found '{}'", kLeastFirst, text));
  }
  return steps;
}

TorchSteps torch_steps_of(const std::string& asked, const std::string& schedule) {
  if (!asked.empty()) return torch_steps(asked);
  Schedule s;
  if (!parse_schedule(schedule, s) || s.by != WindowsBy::steps) return {};
  const std::uint64_t wait = s.skip_first_wait != 0 ? 0 : s.wait;
  const auto before = static_cast<std::int64_t>(s.skip_first + wait + s.warmup);
  const std::int64_t first = std::max(before + 1, kLeastFirst);
  return {first, std::max(first, before + static_cast<std::int64_t>(s.active))};
}

std::string kineto_config(const TorchSteps& steps, const std::filesystem::path& trace) {
  // libkineto's first step is 0, and a window begins where its step has ended. Without a duration
  // it never ends by the clock.
  return fmt::format(
      "ACTIVITIES_LOG_FILE={}\nPROFILE_START_ITERATION={}\nACTIVITIES_WARMUP_ITERATIONS=1\n"
      "ACTIVITIES_ITERATIONS={}\nACTIVITIES_DURATION_MSECS=0\n",
      trace.string(), steps.first - 2, steps.last - steps.first + 1);
}

}  // namespace tprof::launch
