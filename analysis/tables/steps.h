// The calls in each step of a job, by kind.
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

// A kind of call that is comparable between runs: without communicator ids.

struct OpKind {
  Bucket bucket = Bucket::ALLGATHER;
  std::string function{};
  std::string dtype{};
  std::int64_t bytes_class = -1;
  // The communicator's role; the host memory of a copy between host and device. Empty: unknown.
  std::string role{};
  std::string size{};  // communicator size: "world" or a number; empty: a copy

  std::uint64_t hash() const {
    const std::hash<std::string> text;
    return run::hash_of(bytes_class, static_cast<std::int64_t>(text(function) ^ 3 * text(dtype)),
                        static_cast<std::int64_t>(text(role) ^ 3 * text(size)));
  }
  auto operator<=>(const OpKind&) const = default;  // NOLINT(modernize-use-nullptr)
};

// True for calls that some programs make once for several micro-batches, such as gradient
// reductions and logs.
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
  std::int64_t from_ns = 0;   // CLOCK_REALTIME when the first rank began it
  std::uint64_t host_ns = 0;  // sum of lengths on hosts that do not run ahead
  std::uint64_t hosts = 0;    // number of these hosts
  double device_ns = 0;       // its length, the mean over devices; 0: unknown
  std::uint64_t ranks = 0;    // ranks that made it
  std::uint64_t calling = 0;  // ranks with known calls in it
  std::map<Kind, read::Amounts> kinds{};

  // Returns the mean over the hosts. The time from the first begin to the last end would include
  // the skew between ranks in every step.
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

// True if a rank was in one of these steps then, or if there is no list.
bool in_steps(const std::optional<StepList>& asked, const steps::Found& found,
              const read::Process& rank, std::int64_t ts_ns);

// Returns the steps in `asked` by number. Counts directly executed calls, as replayed ones have no
// line. Uses the writers' counts of steps, else lines; only lines have times on the device
// (`timed`). kind_of(rank, call) takes calls and rows.
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
  using InStep = std::pair<std::size_t, Kind>;  // index in the rank's intervals
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
    if (found.exact) {  // keeps the writers' counts
      sum = sum.on_device();
    } else if (&of != std::exchange(before, &of)) {
      ++step.calling;
    }
    step.kinds[key.second] += sum;
  };
  each_group<read::Amounts>(lines, in_step, take);
  return all;
}

// Calls of one size, for comparing steps.
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

// Kinds of calls by step, for comparing two runs. Only the last steps of a long run are kept.
using StepCalls = StepOf<OpKind>;
using CallsBySteps = std::map<std::int64_t, StepCalls>;
CallsBySteps step_calls(const run::Lines& lines, const steps::Found& found, const OpKinds& kinds);

// Steps whose calls differ in the same way from most steps.
struct Odd {
  std::vector<std::int64_t> steps;
  std::map<SizeKey, std::int64_t> more;  // negative: fewer
};
std::vector<Odd> odd_ones(const StepTotals& steps);

}  // namespace tprof::tables
