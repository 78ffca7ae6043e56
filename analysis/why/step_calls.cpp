// Finds calls that long steps, or the steps before them, have more of: a host that reads a value
// waits for its device, and so launches the next step's work late.
#include <algorithm>
#include <cmath>

#include "why/numbers.h"
#include "why/step_copies.h"

namespace tprof::why {
namespace {

using check::Say;

constexpr double kNearlyAll = 0.9;

// Returns how many of these calls a rank makes in each step of Evidence::steps, or in the step
// before it.
std::vector<double> calls_of(const Evidence& e, float Cell::*calls, bool before) {
  const Times& t = e.times;
  std::vector<double> all;
  for (const std::size_t s : e.steps) {
    const bool known = !before || (s > 0 && t.steps[s - 1] + 1 == t.steps[s]);
    std::vector<double> of_ranks;
    for (std::size_t r = 0; known && r < t.ranks.size(); ++r) {
      of_ranks.push_back(t.of(r)[s - (before ? 1 : 0)].*calls);
    }
    all.push_back(median(std::move(of_ranks)));
  }
  return all;
}

// Calls that nearly all long steps have more than the others.
struct More {
  std::size_t steps = 0;  // long steps; 0: none found
  double calls = 0;       // per long step
};
More more_of(const std::vector<double>& calls, const std::vector<std::size_t>& steps) {
  const auto is_long = [&](std::size_t i) { return std::ranges::binary_search(steps, i); };
  std::vector<double> elsewhere;
  std::vector<double> more;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!is_long(i)) elsewhere.push_back(calls[i]);
  }
  const double usual = median(elsewhere);
  const auto has_more = [&](double n) { return n > usual; };
  const auto others = static_cast<double>(std::ranges::count_if(elsewhere, has_more));
  for (const std::size_t i : steps) {
    if (has_more(calls[i])) more.push_back(calls[i] - usual);
  }
  const auto n = static_cast<double>(more.size());
  if (n < 2 || n < kNearlyAll * static_cast<double>(steps.size())) return {};
  if (others > (1 - kNearlyAll) * static_cast<double>(elsewhere.size())) return {};
  // Long steps may coincide with such calls by chance.
  if (std::pow((n + others) / static_cast<double>(calls.size()), n) > kChance) return {};
  return {more.size(), median(std::move(more))};
}

// True if the excess length of these steps is mostly idle time of the devices.
bool devices_idle(const Evidence& e, const std::vector<std::size_t>& steps) {
  std::vector<double> lengths;
  std::vector<double> idle;
  for (const std::size_t s : e.steps) {
    double sum = 0;
    for (std::size_t r = 0; r < e.times.ranks.size(); ++r) sum += e.times.of(r)[s].idle();
    lengths.push_back(e.times.length(s));
    idle.push_back(sum / static_cast<double>(e.times.ranks.size()));
  }
  const double usual = median(lengths);
  const double usual_idle = median(idle);
  double longer = 0;
  double idle_longer = 0;
  for (const std::size_t i : steps) {
    longer += lengths[i] - usual;
    idle_longer += idle[i] - usual_idle;
  }
  return idle_longer * 2 > longer;
}

}  // namespace

void tell_calls_of_steps(const Evidence& e, const std::vector<std::size_t>& steps,
                         check::Finding& f) {
  if (!f.evidence.empty()) {
    if (f.evidence.front().what == Say::copies_out_more) f.next = check::Fact{Say::save_aside, {}};
    return;
  }
  // The first steps warm up.
  std::vector<std::size_t> later;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (steps[n] != n) later.push_back(steps[n]);
  }
  for (const bool before : {false, true}) {
    const More reads = more_of(calls_of(e, &Cell::reads, before), later);
    More calls = more_of(calls_of(e, &Cell::collectives, before), later);
    if (reads.steps != 0 && calls.steps != reads.steps) calls = {};
    const std::size_t n = std::max(reads.steps, calls.steps);
    if (n == 0) continue;
    const auto counted = [](const More& more) {
      return more.steps == 0 ? std::nullopt : std::optional<std::int64_t>(std::llround(more.calls));
    };
    f.evidence.push_back({before ? Say::more_calls_before : Say::more_calls,
                          {{"all", n == steps.size()},
                           {"n", n},
                           {"reads", counted(reads)},
                           {"and", reads.steps != 0 && calls.steps != 0},
                           {"calls", counted(calls)}}});
    if (reads.steps == 0) {
      f.next = check::Fact{Say::call_rarely, {}};
    } else if (devices_idle(e, later)) {
      f.next = check::Fact{Say::read_rarely, {}};
    }
    return;
  }
}

}  // namespace tprof::why
