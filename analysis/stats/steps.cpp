#include "stats/steps.h"

#include <algorithm>
#include <memory>
#include <set>

#include "steps/pace.h"

namespace tprof::stats {
namespace {

using read::Event;
using read::Process;

// The calls of one rank in its steps.
struct RankFigures {
  RankFigures(const Process& process, const std::vector<steps::Interval>& all)
      : rank(process), intervals(all) {}

  void add(std::size_t k, const SizeKey& size, const read::Amounts& amounts) {
    if (steps.empty()) steps.resize(intervals.size());
    steps[k].buckets[static_cast<std::size_t>(size.bucket)] += amounts;
    steps[k].calls[size] += amounts.calls;
  }

  const Process& rank;
  const std::vector<steps::Interval>& intervals;
  std::vector<StepFigures> steps{};  // empty before the first call: other ranks are read first
};

// Takes them from what its writer counted.
RankFigures of_lines(const Process& rank, const std::vector<steps::Interval>& intervals,
                     const std::vector<read::StepLine>& lines) {
  RankFigures figures(rank, intervals);
  for (std::size_t k = 0; k < lines.size(); ++k) {
    for (const read::Row& row : lines[k].rows) {
      const std::uint64_t least =
          row.bytes_class < 0 ? 0 : std::uint64_t{1} << static_cast<unsigned>(row.bytes_class);
      figures.add(k, {row.bucket, least, true}, row.amounts);
    }
  }
  return figures;
}

class Adder {
 public:
  Adder(const steps::Found& found, const StepList& asked, StepTotals& all)
      : paced_(steps::in_pace(found)), asked_(asked), all_(all) {}

  void take(const RankFigures& rank) {
    static const StepFigures kNone;
    for (std::size_t k = 0; k < rank.intervals.size(); ++k) {
      const steps::Interval& interval = rank.intervals[k];
      if (!asked_.holds(interval.step)) continue;
      const StepFigures& figures = rank.steps.empty() ? kNone : rank.steps[k];
      add_step(by_number_[interval.step], figures, interval, rank.rank,
               paced_.contains(&rank.rank));
    }
  }
  void finish() {
    for (auto& [number, figures] : by_number_) {
      figures.step = number;
      all_.steps.push_back(std::move(figures));
    }
  }

 private:
  static void add_step(StepFigures& to, const StepFigures& rank, const steps::Interval& interval,
                       const Process& process, bool paced) {
    const std::int64_t from = process.header.base_time_ns + interval.from_ns;
    to.from_ns = to.from_ns == 0 ? from : std::min(to.from_ns, from);
    const std::int64_t ns = interval.to_ns - interval.from_ns;
    if (paced && interval.end_known && ns >= 0) {
      to.sum_ns = read::saturated_sum(to.sum_ns, static_cast<std::uint64_t>(ns));
      ++to.ranks;
    }
    stats::add(to.buckets, rank.buckets);
    for (const auto& [key, calls] : rank.calls) to.calls[key] += calls;
  }

  std::set<const Process*> paced_;
  StepList asked_;
  StepTotals& all_;
  std::map<std::int64_t, StepFigures> by_number_;
};

// Takes them from its event lines.
struct PerStep {
  PerStep(const Process& rank, const std::vector<steps::Interval>& intervals, const StepList& asked)
      : figures(rank, intervals), only(asked) {}

  void call(const Event& e) {
    if (e.unfinished || e.failed || e.captured || !e.chosen) return;
    const auto& all = figures.intervals;
    const steps::Interval* interval = steps::interval_at(all, e.ts_ns);
    if (interval == nullptr || !only.holds(interval->step)) return;
    const auto k = static_cast<std::size_t>(interval - all.data());
    figures.add(k, {e.bucket, e.bytes}, amounts_of(e));
  }

  RankFigures figures;
  StepList only;
};

}  // namespace

bool in_steps(const std::optional<StepList>& asked, const steps::Found& found,
              const read::Process& rank, std::int64_t ts_ns) {
  return !asked || asked->holds(steps::step_at(found, &rank, ts_ns).value_or(-1));
}

StepTotals step_totals(const run::Lines& lines, const steps::Found& found, const StepList& asked) {
  StepTotals all;
  Adder adder(found, asked, all);
  if (found.exact) {
    for (const auto& [rank, intervals] : found.ranks) {
      adder.take(of_lines(*rank, intervals, found.lines.at(rank)));
    }
  } else {
    lines.each(
        [&](const Process& rank) {
          const auto intervals = found.ranks.find(&rank);
          return intervals == found.ranks.end()
                     ? std::nullopt
                     : std::optional<PerStep>(std::in_place, rank, intervals->second, asked);
        },
        [&](const PerStep& rank) { adder.take(rank.figures); });
  }
  adder.finish();
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
  all.reserve(odd.size());
  for (auto& [more, which] : odd) all.push_back({std::move(which), more});
  std::ranges::sort(all, {}, [](const Odd& o) { return o.steps[0]; });
  return all;
}

}  // namespace tprof::stats
