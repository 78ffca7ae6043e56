// What was called in each step of a job.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "stats/totals.h"
#include "steps/found.h"

namespace tprof::stats {

// Calls of one size: how the counts of two steps are compared.
struct SizeKey {
  Bucket bucket = Bucket::ALLGATHER;
  std::uint64_t bytes = 0;  // of a call
  bool at_least = false;    // and less than twice that

  auto operator<=>(const SizeKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct StepFigures {
  std::int64_t step = 0;
  std::int64_t from_ns = 0;  // CLOCK_REALTIME of the first rank to begin it
  std::int64_t to_ns = 0;    // of the last to end it
  Buckets buckets{};         // sums over ranks
  std::map<SizeKey, std::uint64_t> calls;
};

struct StepTotals {
  steps::Found found;
  std::vector<StepFigures> steps;  // those that were asked for
  // Of these together: what the ledgers tell of the whole job.
  Buckets buckets{};
  std::map<std::int64_t, Buckets> per_rank;
  Ops ops;
  HostMemories host_memory{};
};

// Numbers of steps: "10-" has no end, "3-7", "5".
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = INT64_MAX;
  bool holds(std::int64_t step) const { return first <= step && step <= last; }
};

// Whether a rank was in one of these at that moment; they are from 0 on. Nothing: all are meant.
bool in_steps(const std::optional<StepRange>& asked, const steps::Found& found,
              const read::Process& rank, std::int64_t ts_ns);

// Calls that were executed directly: those that a graph replays have no line. From what the ranks'
// writers counted in these steps, or from the lines of the next pass. `to` stays where it is.
void want_step_totals(collect::Passes& passes, steps::Found found, const StepRange& asked,
                      StepTotals& to);

// Steps that differ from most in what they called, with what: the same difference is said once.
struct Odd {
  std::vector<std::int64_t> steps;
  std::map<SizeKey, std::int64_t> more;  // less: below 0
};
std::vector<Odd> odd_ones(const std::vector<StepFigures>& steps);

}  // namespace tprof::stats
