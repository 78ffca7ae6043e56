// The calls in each step of a job, by what tells kinds of calls apart.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "steps/found.h"
#include "tables/comms.h"
#include "tables/groups.h"
#include "tables/totals.h"

namespace tprof::tables {

// Calls by what they have in common in any run: without ids of communicators.

struct OpKind {
  Bucket bucket = Bucket::ALLGATHER;
  std::string function{};
  std::string dtype{};
  std::int64_t bytes_class = -1;
  // The communicator's role; for a copy between host and device the host's memory. Empty: not
  // known.
  std::string role{};
  std::string size{};  // of the communicator: "world", or a number; empty: a copy

  std::uint64_t hash() const {
    const std::hash<std::string> text;
    return run::hash_of(bytes_class, static_cast<std::int64_t>(text(function) ^ 3 * text(dtype)),
                        static_cast<std::int64_t>(text(role) ^ 3 * text(size)));
  }
  auto operator<=>(const OpKind&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Made once for several micro-batches, at least in some programs: gradients may be reduced once for
// all of them, and logs written.
bool once_for_several(Bucket bucket);

class OpKinds {
 public:
  OpKinds(std::int64_t world, const std::vector<CommSummary>& comms);

  template <typename Call>  // an event, or a row of a ledger or of a step
  OpKind of(const Call& call, const read::Process& process) const {
    return of(op_of(call, process), call.host_memory);
  }

 private:
  OpKind of(const OpKey& op, HostMemory memory) const;

  std::int64_t world_;
  std::map<std::pair<std::string, std::int64_t>, std::string> roles_;
};

// Sums over ranks.
template <typename Kind>
struct StepOf {
  std::int64_t step = 0;
  std::int64_t from_ns = 0;   // CLOCK_REALTIME of the first rank to begin it
  std::uint64_t host_ns = 0;  // of how long it took each rank whose host does not run ahead
  std::uint64_t hosts = 0;    // of which that is known
  double device_ns = 0;       // its length, the mean over the devices; 0: not known
  std::uint64_t ranks = 0;    // that made it
  std::uint64_t calling = 0;  // those of them whose calls in it are known
  std::map<Kind, read::Amounts> kinds{};

  // The mean over the hosts. From the first to begin it to the last to end it would be longer by
  // what ranks are apart, in every step again.
  std::optional<std::int64_t> length_ns() const {
    return hosts == 0 ? std::nullopt : std::optional(static_cast<std::int64_t>(host_ns / hosts));
  }
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

// Returns the steps that were asked for, by their number. Counts calls that were executed directly:
// those that a graph replays have no line. Takes what the ranks' writers counted in these steps,
// else their lines, which alone tell the times on the device (`timed`). kind_of(rank, call) takes
// calls and rows.
template <typename Kind, typename KindOf>
std::map<std::int64_t, StepOf<Kind>> by_step(const run::Lines& lines, const steps::Found& found,
                                             const StepList& asked, bool timed,
                                             const KindOf& kind_of) {
  std::map<std::int64_t, StepOf<Kind>> all;
  const auto paced = steps::in_pace(found);
  for (const auto& [rank, intervals] : found.ranks) {
    for (std::size_t k = 0; k < intervals.size(); ++k) {
      const steps::Interval& of = intervals[k];
      if (!asked.holds(of.step)) continue;
      StepOf<Kind>& step = all[of.step];
      const std::int64_t from_ns = rank->header.base_time_ns + of.from_ns;
      step.from_ns = step.ranks == 0 ? from_ns : std::min(step.from_ns, from_ns);
      step.step = of.step;
      ++step.ranks;
      const std::int64_t ns = of.to_ns - of.from_ns;
      if (paced.contains(rank) && of.end_known && ns >= 0) {
        step.host_ns = read::saturated_sum(step.host_ns, static_cast<std::uint64_t>(ns));
        ++step.hosts;
      }
      if (!found.exact) continue;
      const read::Rows& rows = found.lines.at(rank)[k].rows;
      for (const read::Row& row : rows) step.kinds[kind_of(*rank, row)] += row.amounts;
      step.calling += rows.empty() ? 0 : 1;
    }
  }
  if (found.exact && !timed) return all;
  using InStep = std::pair<std::size_t, Kind>;  // of the rank's intervals
  const auto in_step = [&](const read::Process& rank) {
    const auto of_rank = found.ranks.find(&rank);
    const auto* intervals = of_rank == found.ranks.end() ? nullptr : &of_rank->second;
    return [&, intervals](const read::Event& e) -> std::optional<InStep> {
      const auto* in = intervals == nullptr ? nullptr : steps::interval_at(*intervals, e.ts_ns);
      if (in == nullptr || !asked.holds(in->step)) return std::nullopt;
      return InStep(in - intervals->data(), kind_of(rank, e));
    };
  };
  const steps::Interval* before = nullptr;
  const auto take = [&](const read::Process& rank, const InStep& key, read::Amounts sum) {
    const steps::Interval& of = found.ranks.at(&rank)[key.first];
    StepOf<Kind>& step = all[of.step];
    if (found.exact) {  // the writers' counts stand there
      sum = {.device_ns = sum.device_ns,
             .device_timed = sum.device_timed,
             .device_bytes = sum.device_bytes};
    } else if (&of != std::exchange(before, &of)) {
      ++step.calling;
    }
    step.kinds[key.second] += sum;
  };
  each_group<read::Amounts>(lines, in_step, take);
  return all;
}

// Calls of one size, by which the counts of two steps are compared.
struct SizeKey {
  Bucket bucket = Bucket::ALLGATHER;
  std::uint64_t bytes = 0;  // of a call
  bool at_least = false;    // at least `bytes`, and less than twice that

  std::uint64_t hash() const { return run::hash_of(bucket, bytes); }
  auto operator<=>(const SizeKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
using StepTotals = std::vector<StepOf<SizeKey>>;
StepTotals step_totals(const run::Lines& lines, const steps::Found& found, const StepList& asked);
Buckets buckets_of(const StepOf<SizeKey>& step);

// The same kinds of calls in each step of any run, for which two are compared: the last steps of a
// long run, which bounds what is kept.
using StepCalls = StepOf<OpKind>;
using CallsBySteps = std::map<std::int64_t, StepCalls>;
CallsBySteps step_calls(const run::Lines& lines, const steps::Found& found, const OpKinds& kinds);

// Steps whose calls differ in the same way from those of most steps.
struct Odd {
  std::vector<std::int64_t> steps;
  std::map<SizeKey, std::int64_t> more;  // below 0: fewer
};
std::vector<Odd> odd_ones(const StepTotals& steps);

}  // namespace tprof::tables
