#include "stats/steps.h"

#include <algorithm>
#include <bit>

#include "interpose/format/dtypes.h"

namespace tprof::stats {
namespace {

using read::Event;
using read::Process;

// Of a name of the contract's; 0: not known.
std::uint64_t element_size(const std::string& dtype) {
  if (dtype == "byte") return 1;
  if (dtype.size() == 5 && dtype.starts_with("byte")) {
    return static_cast<std::uint64_t>(dtype[4] - '0');
  }
  const auto* known = std::ranges::find(kDtypes, dtype, &DtypeInfo::name);
  return known == std::end(kDtypes) ? 0 : known->size;
}

read::Amounts amounts_of(const Event& e) {
  const auto host_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(e.dur_ns, 0));
  const std::uint64_t size = element_size(e.dtype);
  return {.calls = 1,
          .count = e.count,
          .elements = size == 0 ? 0 : e.bytes / size,
          .bytes = e.bytes,
          .host_ns = host_ns,
          .host_ns_max = host_ns};
}

struct PerStep : diagnose::Collector {
  PerStep(const Process& rank, const std::vector<steps::Interval>& intervals,
          const StepRange& asked)
      : Collector(rank), intervals_(intervals), asked_(asked), figures(intervals.size()) {}

  void call(const Event& e) override {
    if (e.unfinished || e.failed || e.captured) return;
    const auto next = std::ranges::upper_bound(intervals_, e.ts_ns, {}, &steps::Interval::from_ns);
    if (next == intervals_.begin()) return;
    const auto step = std::prev(next);
    if (e.ts_ns >= step->to_ns) return;
    const read::Amounts amounts = amounts_of(e);
    StepFigures& of_step = figures[static_cast<std::size_t>(step - intervals_.begin())];
    of_step.buckets[static_cast<std::size_t>(e.bucket)] += amounts;
    ++of_step.calls[{e.bucket, e.bytes}];
    if (!asked_.holds(step->step)) return;
    OpKey key{e.bucket, e.name, e.dtype, {}, 0, -1};
    if (e.bytes != 0) key.bytes_class = std::bit_width(e.bytes) - 1;
    if (e.comm) {
      const auto comm = rank_.comms.find(*e.comm);
      key.comm_id = comm == rank_.comms.end() ? "?" : comm->second.id;
      key.nranks = comm == rank_.comms.end() ? 0 : comm->second.nranks;
    }
    ops[key] += amounts;
  }

  const std::vector<steps::Interval>& intervals_;
  StepRange asked_;
  std::vector<StepFigures> figures;
  Ops ops;
};

void add(StepFigures& to, const StepFigures& rank, const steps::Interval& interval,
         const Process& process) {
  const std::int64_t from = process.header.base_time_ns + interval.from_ns;
  const std::int64_t end = process.header.base_time_ns + interval.to_ns;
  to.from_ns = to.from_ns == 0 ? from : std::min(to.from_ns, from);
  to.to_ns = std::max(to.to_ns, end);
  for (std::size_t b = 0; b < kBucketCount; ++b) to.buckets[b] += rank.buckets[b];
  for (const auto& [key, calls] : rank.calls) to.calls[key] += calls;
}

}  // namespace

StepTotals step_totals(const job::Job& job, const read::Traces& traces, const StepRange& asked) {
  StepTotals all;
  all.found = steps::find(job, traces, [](std::size_t) {});
  std::vector<read::Skipped> unreadable;
  const auto lines = diagnose::Lines::of_job(
      job, traces,
      [&](const Process& rank, diagnose::Collectors& collectors) {
        const auto intervals = all.found.ranks.find(&rank);
        if (intervals == all.found.ranks.end()) return;
        collectors.try_emplace(typeid(PerStep),
                               std::make_unique<PerStep>(rank, intervals->second, asked));
      },
      [](std::size_t) {}, unreadable);
  std::map<std::int64_t, StepFigures> by_number;
  for (const auto& [rank, intervals] : all.found.ranks) {
    const auto* of_rank = lines.of<PerStep>(rank);
    if (of_rank == nullptr) continue;
    for (std::size_t k = 0; k < intervals.size(); ++k) {
      if (!asked.holds(intervals[k].step)) continue;
      add(by_number[intervals[k].step], of_rank->figures[k], intervals[k], *rank);
      if (!rank->header.rank) continue;
      Buckets& buckets = all.per_rank[*rank->header.rank];
      for (std::size_t b = 0; b < kBucketCount; ++b) buckets[b] += of_rank->figures[k].buckets[b];
    }
    for (const auto& [key, amounts] : of_rank->ops) all.ops[key] += amounts;
  }
  for (auto& [number, figures] : by_number) {
    figures.step = number;
    all.steps.push_back(std::move(figures));
  }
  return all;
}

std::vector<Odd> odd_ones(const std::vector<StepFigures>& steps) {
  std::map<std::map<SizeKey, std::uint64_t>, std::size_t> times;
  for (const StepFigures& s : steps) ++times[s.calls];
  const auto most =
      std::ranges::max_element(times, {}, [](const auto& calls) { return calls.second; });
  if (most == times.end() || (most->second == 1 && steps.size() > 1)) return {};
  std::map<std::map<SizeKey, std::int64_t>, std::vector<std::int64_t>> odd;
  for (const StepFigures& s : steps) {
    if (s.calls == most->first) continue;
    std::map<SizeKey, std::int64_t> more;
    for (const auto& [key, calls] : s.calls) more[key] += static_cast<std::int64_t>(calls);
    for (const auto& [key, calls] : most->first) more[key] -= static_cast<std::int64_t>(calls);
    std::erase_if(more, [](const auto& entry) { return entry.second == 0; });
    odd[more].push_back(s.step);
  }
  std::vector<Odd> all;
  for (auto& [more, which] : odd) all.push_back({std::move(which), more});
  std::ranges::sort(all, {}, [](const Odd& o) { return o.steps[0]; });
  return all;
}

}  // namespace tprof::stats
