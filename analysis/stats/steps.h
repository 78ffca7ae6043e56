// The calls in each step of a job.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "stats/totals.h"
#include "steps/found.h"

namespace tprof::stats {

// Calls of one size, by which the counts of two steps are compared.
struct SizeKey {
  Bucket bucket = Bucket::ALLGATHER;
  std::uint64_t bytes = 0;  // of a call
  bool at_least = false;    // at least `bytes`, and less than twice that

  auto operator<=>(const SizeKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct StepFigures {
  std::int64_t step = 0;
  std::int64_t from_ns = 0;  // CLOCK_REALTIME of the first rank to begin it
  std::uint64_t sum_ns = 0;  // of how long it took each rank whose host does not run ahead
  std::uint64_t ranks = 0;   // of which that is known
  Buckets buckets{};         // sums over ranks
  std::map<SizeKey, std::uint64_t> calls;

  // The mean over these ranks. From the first to begin it to the last to end it would be longer by
  // what ranks are apart, in every step again.
  std::optional<std::int64_t> length_ns() const {
    return ranks == 0 ? std::nullopt : std::optional(static_cast<std::int64_t>(sum_ns / ranks));
  }
};

struct StepTotals {
  std::vector<StepFigures> steps;  // those that were asked for
};

// Numbers of steps: "10-" has no end, "3-7", "5", "3,5-7".
struct StepList {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges{{0, INT64_MAX}};  // first and last
  bool holds(std::int64_t step) const {
    return std::ranges::any_of(ranges,
                               [&](const auto& r) { return r.first <= step && step <= r.second; });
  }
};

// True if a rank was in one of the steps asked for at that moment (steps count from 0), or if none
// were asked for.
bool in_steps(const std::optional<StepList>& asked, const steps::Found& found,
              const read::Process& rank, std::int64_t ts_ns);

// Counts calls that were executed directly: those that a graph replays have no line. Takes what the
// ranks' writers counted in these steps, else their lines.
StepTotals step_totals(const run::Lines& lines, const steps::Found& found, const StepList& asked);

// Steps whose calls differ in the same way from those of most steps.
struct Odd {
  std::vector<std::int64_t> steps;
  std::map<SizeKey, std::int64_t> more;  // below 0: fewer
};
std::vector<Odd> odd_ones(const std::vector<StepFigures>& steps);

}  // namespace tprof::stats
