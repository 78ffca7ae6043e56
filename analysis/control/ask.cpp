#include "control/ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <thread>

#include "read/error.h"

namespace tprof::control {
namespace {

constexpr std::chrono::milliseconds kPause{5};
constexpr std::uint64_t kMost = 1'000'000;  // steps ahead

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Returns a step, counted from 1, that no rank reaches within `lead_ns` from now. Returns 0 if a
// rank has no steps that the program marks.
std::uint64_t step_ahead(const std::vector<Target>& targets, std::uint64_t lead_ns) {
  constexpr std::uint64_t kLongUntold = 500'000'000;
  std::uint64_t last = 0;
  for (const Target& t : targets) {
    const StepsSeen seen = steps_seen(t.ring);
    if (seen.count == 0) return 0;
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t untold = std::min(now - std::min(now, seen.last_ns), kLongUntold);
    const std::uint64_t took = std::max<std::uint64_t>(seen.took_ns, 1);
    const std::uint64_t until = seen.count + std::min((untold + lead_ns) / took + 1, kMost);
    last = std::max(last, until);
  }
  return last + 1;
}

void ask(Target& t, const Request& request) {
  if (t.ring.empty()) {
    t.trouble =
        fmt::format("its ring file is not in sight: it runs on {}, or could make none", t.host);
    return;
  }
  try {
    t.asked = std::make_unique<Asked>(t.ring, request.command, request.argument);
  } catch (const read::BadInput& e) {
    t.trouble = e.what();
  }
}

void wait_for(const std::vector<Target>& targets) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const auto waits = [](const Target& t) { return t.asked && !t.asked->answered(); };
  while (std::ranges::any_of(targets, waits) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kPause);
  }
}

bool any_late(const std::vector<Target>& targets) {
  return std::ranges::any_of(targets, [](const Target& t) {
    return t.asked && t.asked->answered() && t.asked->answer() == Obeyed::late;
  });
}

}  // namespace

void ask_all(std::vector<Target>& targets, const Request& request) {
  for (Target& t : targets) {
    t.asked.reset();
    ask(t, request);
  }
  wait_for(targets);
}

Request ask_for_window(std::vector<Target>& targets, const Request& request) {
  constexpr std::uint64_t kLeads[] = {1'000'000'000, 3'000'000'000, 10'000'000'000};
  Request same = request;
  same.same_step = true;
  for (const std::uint64_t lead_ns : kLeads) {
    const std::uint64_t first = step_ahead(targets, lead_ns);
    if (first == 0) break;
    same.argument = fmt::format("{}@{}", request.argument, first);
    ask_all(targets, same);
    if (!any_late(targets)) return same;
  }
  if (any_late(targets)) return same;
  ask_all(targets, request);
  return request;
}

}  // namespace tprof::control
