// Tests what `tprof ctl` is told of the steps of a running program.
#include <memory>
#include <vector>

#include "catch2.h"
#include "interpose/write/step_windows.h"

using namespace tprof;

namespace {

constexpr std::uint64_t kMs = 1'000'000;

// Begins of steps that come in pairs: 1 ms apart, and a pair every 10 ms, as calls of a function
// that a training step makes twice.
std::uint64_t begin_of(std::uint64_t ordinal) {
  return kMs + ordinal / 2 * 10 * kMs + ordinal % 2 * kMs;
}

StepInterval step(std::uint64_t ordinal) {
  return {static_cast<std::int64_t>(ordinal), ordinal, begin_of(ordinal), begin_of(ordinal + 1)};
}

}  // namespace

TEST_CASE("a step takes as long as steps take together, wherever the writer looks") {
  for (const std::uint64_t each : {1, 2, 3, 7}) {  // new steps at a look
    const auto windows = std::make_unique<Windows>();
    StepWindows follows(*windows);
    std::uint64_t next = 0;
    while (next < 1000) {
      std::vector<StepInterval> seen;
      for (std::uint64_t i = 0; i < each; ++i) seen.push_back(step(next++));
      follows.follow(seen, true);
      CHECK(windows->begun.count == next);
      if (next < 10) continue;
      CHECK(windows->begun.took_ns > 4 * kMs);
      CHECK(windows->begun.took_ns < 6 * kMs);
    }
  }
}

TEST_CASE("a program that becomes slower is told as slower within a second or a step") {
  const auto windows = std::make_unique<Windows>();
  StepWindows follows(*windows);
  std::uint64_t now = kMs;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t from = now;
    now += i < 200 ? 10 * kMs : 700 * kMs;
    follows.follow(std::vector<StepInterval>{{static_cast<std::int64_t>(i), i, from, now}}, true);
  }
  CHECK(windows->begun.took_ns == 700 * kMs);
}
