#include "stats/step_calls.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "stats/spread.h"
#include "stats/timed_calls.h"
#include "steps/pace.h"

namespace tprof::stats {
namespace {

CallSums sums_of(const read::Amounts& a) {
  return {.calls = a.calls, .elements = a.elements, .bytes = a.bytes, .host_ns = a.host_ns};
}

struct InSteps {
  InSteps(const read::Process& rank, const steps::Found& found, bool in_pace,
          const OpKinds& all_kinds)
      : rank_(rank),
        intervals(found.ranks.at(&rank)),
        counted(found.exact),
        paced(in_pace),
        first(found.steps[found.steps.size() - std::min(found.steps.size(), kMostStepsKept)]),
        kinds(all_kinds) {
    for (std::size_t k = 0; counted && k < intervals.size(); ++k) {
      for (const read::Row& row : found.lines.at(&rank)[k].rows) {
        at(kinds.of(row, rank), k) += sums_of(row.amounts);
      }
    }
  }

  void call(const read::Event& e) { calls.call(e); }
  void device_time(const read::DeviceTime& t) { calls.time(t); }
  void end() { calls.finish(); }

  void add_to(CallsBySteps& all) const {
    std::vector<bool> known(intervals.size());
    for (const auto& [kind, steps] : sums) {
      for (std::size_t k = 0; k < steps.size(); ++k) {
        if (steps[k].calls == 0 || intervals[k].step < first) continue;
        all[intervals[k].step].kinds[kind] += steps[k];
        known[k] = true;
      }
    }
    for (std::size_t k = 0; k < intervals.size(); ++k) {
      if (intervals[k].step < first) continue;
      StepCalls& step = all[intervals[k].step];
      ++step.ranks;
      if (paced) {
        step.host_ns += static_cast<double>(intervals[k].to_ns - intervals[k].from_ns);
        ++step.hosts;
      }
      if (known[k]) ++step.calling;
    }
  }

  void take(const read::Event& e, const read::DeviceTime* t) {
    if (e.unfinished || e.captured || e.failed || !e.chosen) return;
    const steps::Interval* in = steps::interval_at(intervals, e.ts_ns);
    if (in == nullptr) return;
    CallSums& s = at(kinds.of(e, rank_), static_cast<std::size_t>(in - intervals.data()));
    if (!counted) s += sums_of(amounts_of(e));
    if (t == nullptr) return;
    s.device_timed += t->calls;  // those of a group are alike
    s.device_ns += not_below_0(t->dur_ns);
    s.device_bytes += t->calls * e.bytes;
  }

  CallSums& at(const OpKind& kind, std::size_t k) {
    std::vector<CallSums>& of = sums[kind];
    of.resize(intervals.size());
    return of[k];
  }

  const read::Process& rank_;
  const std::vector<steps::Interval>& intervals;
  bool counted;
  bool paced;
  std::int64_t first;
  const OpKinds& kinds;
  std::map<OpKind, std::vector<CallSums>> sums;
  TimedCalls calls{[this](const read::Event& e, const read::DeviceTime* t) { take(e, t); }};
};

}  // namespace

CallSums& CallSums::operator+=(const CallSums& more) {
  for (const auto of : {&CallSums::calls, &CallSums::elements, &CallSums::bytes, &CallSums::host_ns,
                        &CallSums::device_timed, &CallSums::device_ns, &CallSums::device_bytes}) {
    this->*of += more.*of;
  }
  return *this;
}

CallsBySteps step_calls(const run::Lines& lines, const steps::Found& found, const OpKinds& kinds) {
  CallsBySteps all;
  const auto paced = steps::in_pace(found);
  lines.each(
      [&](const read::Process& rank) {
        return found.ranks.contains(&rank) ? std::optional<InSteps>(std::in_place, rank, found,
                                                                    paced.contains(&rank), kinds)
                                           : std::nullopt;
      },
      [&](const InSteps& rank) { rank.add_to(all); });
  return all;
}

}  // namespace tprof::stats
