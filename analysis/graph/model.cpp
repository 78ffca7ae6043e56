#include "graph/model.h"

#include <ranges>

#include "job/hosts.h"

namespace tprof::graph {

namespace {

// A change has to spread over all ranks before its saving shows.
constexpr std::size_t kFewestSteps = 4;

// The calls whose lines have a time on the device. Other calls are only counted: lines may exist in
// windows only, or end with the quota.
struct TimedLines {
  std::map<std::int64_t, std::uint64_t> in_steps{};
  std::uint64_t all = 0;
};

// The same for one rank.
class TimedLinesOfRank {
 public:
  explicit TimedLinesOfRank(std::span<const steps::Interval> ascending) : steps_(ascending) {}

  void device_time(const read::DeviceTime& t) {
    ++timed_.all;
    const auto* step = steps::interval_at(steps_, t.ts_ns - t.queued_ns);
    if (step != nullptr) ++timed_.in_steps[step->step];
  }
  void add_to(TimedLines& sum) const {
    sum.all += timed_.all;
    for (const auto& [step, calls] : timed_.in_steps) sum.in_steps[step] += calls;
  }

 private:
  std::span<const steps::Interval> steps_;
  TimedLines timed_;
};

std::span<const steps::Interval> steps_of(const steps::Found& found, const read::Process& rank) {
  const auto its = found.ranks.find(&rank);
  return its == found.ranks.end() ? std::span<const steps::Interval>() : its->second;
}

// Returns the rank's time from the first of these steps to the last.
run::Interval time_of(std::span<const steps::Interval> ascending, std::int64_t first,
                      std::int64_t last) {
  const auto from = std::ranges::lower_bound(ascending, first, {}, &steps::Interval::step);
  const auto to = std::ranges::upper_bound(ascending, last, {}, &steps::Interval::step);
  return from < to ? run::Interval{from->from_ns, std::prev(to)->to_ns} : run::Interval();
}

// The middle steps with lines, as many as there is room for.
struct Middle {
  run::Parts parts{};             // empty: all
  std::uint64_t needs_calls = 0;  // calls of the fewest steps, if there is no room for them
};
Middle middle_of(const run::Lines& lines, const steps::Found& found, std::uint64_t most_calls) {
  std::uint64_t counted = 0;
  for (const read::Process* p : lines.job().processes) {
    for (const read::Row& row : read::rows_of(*p)) {
      const read::Amounts& a = row.amounts;
      counted = read::saturated_sum(counted, row.comm ? a.calls : a.device_timed);
    }
  }
  if (counted <= most_calls) return {};
  TimedLines lined;
  lines.each([&](const read::Process& p) { return TimedLinesOfRank(steps_of(found, p)); },
             [&](const TimedLinesOfRank& of) { of.add_to(lined); });
  if (lined.all <= most_calls) return {};
  std::vector<std::int64_t> steps;
  std::vector<std::uint64_t> before{0};  // calls before each step, then of all
  for (const auto& [step, calls] : lined.in_steps) {
    steps.push_back(step);
    before.push_back(before.back() + calls);
  }
  const auto first_of = [&](std::size_t n) { return (steps.size() - n) / 2; };
  const auto calls_of = [&](std::size_t n) {
    return before[first_of(n) + n] - before[first_of(n)];
  };
  std::size_t n = steps.size();
  while (calls_of(n) > most_calls) --n;
  Middle middle;
  const std::size_t fewest = std::min(kFewestSteps, steps.size());
  if (steps.empty()) middle.needs_calls = lined.all;
  if (n < fewest) middle.needs_calls = calls_of(fewest);
  for (const read::Process* p : lines.job().processes) {
    run::Interval& part = middle.parts[p];
    if (middle.needs_calls != 0) continue;
    part = time_of(steps_of(found, *p), steps[first_of(n)], steps[first_of(n) + n - 1]);
  }
  return middle;
}

run::Steps steps_of(const steps::Found& found) {
  run::Steps all;
  for (const auto& [rank, steps] : found.ranks) {
    std::vector<run::Step>& its = all[rank];
    its.reserve(steps.size());
    for (const steps::Interval& in : steps) {
      its.push_back({.number = in.step, .from_ns = in.from_ns, .to_ns = in.to_ns});
    }
  }
  return all;
}

}  // namespace

double mean_of(const StepsNs& steps) {
  double sum = 0;
  for (const auto& [step, ns] : steps) sum += ns;
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

run::Run run_of(const run::Lines& lines, const steps::Found& found, std::uint64_t most_calls) {
  const Middle middle = middle_of(lines, found, most_calls);
  run::Run run = run::load(lines, steps_of(found), middle.parts);
  run.no_room_for = middle.needs_calls;
  return run;
}

Model::Model(const run::Run& run, bool marked)
    : marked_(marked), run_(run), graph_(graph_of(run_, marked_)) {
  for (std::size_t r = 0; r < run_.ranks.size(); ++r) {
    std::vector<End>& ends = ends_.emplace_back();
    find_positions(r);
    for (std::size_t i = 0; i < by_call_[r].size(); ++i) {
      const std::int64_t step = calls_at_[r][by_call_[r][i]].step;
      if (step == Position::kNoStep) continue;
      if (ends.empty() || ends.back().step != step) ends.push_back({step, i, i, std::nullopt});
      ends.back().to = i + 1;
    }
    for (const Node n : graph_.host[r]) {
      if (graph_.kind[n] != Kind::mark) continue;
      const std::int64_t step = position(n).step;
      const auto end = std::ranges::lower_bound(ends, step, {}, &End::step);
      // Steps without calls may follow, outside of windows.
      if (end != ends.end() && end->step == step && !end->at) end->at = n;
    }
  }
  find_last_work();
  measured_ns_ = steps_ns(std::vector<double>(graph_.at_ns.begin(), graph_.at_ns.end()));
  replayed_ns_ = replayed_ns(graph_.lag_ns);
}

StepsNs Model::replayed_ns(std::span<const Lag> lags_ns, std::vector<Edge> more) const {
  at_ns_ = replay(graph_, lags_ns, std::move(more), std::move(at_ns_));
  return at_ns_.empty() ? StepsNs() : steps_ns(at_ns_);
}

std::int64_t Model::step_at(std::size_t rank, std::int64_t ns) const {
  const run::Step* step = run::step_at(run_.ranks[rank].steps, ns);
  return step == nullptr ? Position::kNoStep : step->number;
}

void Model::find_positions(std::size_t rank) {
  const run::Calls& c = run_.ranks[rank].calls;
  by_call_.push_back(run::by_call(c));
  std::vector<Position>& calls_at = calls_at_.emplace_back(c.size());
  constexpr std::pair<std::uint32_t, std::uint32_t> kEnd{UINT32_MAX - 1, 0};
  const auto number = [&](const std::pair<std::uint32_t, std::uint32_t>& call) {
    return numbers_.try_emplace(call, static_cast<std::uint32_t>(numbers_.size())).first->second;
  };
  std::map<std::uint32_t, std::uint32_t> made;  // calls in the step, by communicator
  std::int64_t step = Position::kNoStep;
  for (const std::size_t i : by_call_.back()) {
    const std::int64_t of_call = step_at(rank, c.called_ns[i]);
    if (std::exchange(step, of_call) != of_call) made.clear();
    calls_at[i].step = step;
    if (!c.copies(i)) calls_at[i].call = number({c.comm[i], made[c.comm[i]]++});
  }
  // Ranks that do the same may make different copies, so a copy has the position of the next call.
  // A mark ends the step before it.
  Position next_at;
  auto call = by_call_.back().rbegin();
  std::vector<Node> marks;  // after the step's last call
  for (const Node n : graph_.host[rank] | std::views::reverse) {
    if (graph_.kind[n] == Kind::mark) {
      marks.push_back(n);
      continue;
    }
    Position& here = calls_at[*call];
    for (const Node mark : std::exchange(marks, {})) {
      if (here.step != Position::kNoStep) marks_at_[mark] = {here.step, number(kEnd)};
      next_at = {};
    }
    if (c.copies(*call)) here.call = next_at.step == here.step ? next_at.call : number(kEnd);
    next_at = here;
    ++call;
  }
  // Work belongs to the earliest step with calls still to come: some calls of the next step may
  // already have come, as weights are prefetched.
  std::vector<std::size_t>& next = next_call_.emplace_back(c.size());
  const auto step_of = [&](std::size_t i) {
    return calls_at[i].step == Position::kNoStep ? INT64_MAX : calls_at[i].step;
  };
  for (std::size_t i = c.size(); i-- > 0;) {
    const bool first = i + 1 == c.size() || step_of(i) <= step_of(next[i + 1]);
    next[i] = first ? i : next[i + 1];
  }
}

Position Model::position(Node n) const {
  const std::uint32_t rank = graph_.rank[n];
  const std::vector<Position>& calls = calls_at_[rank];
  switch (graph_.kind[n]) {
    case Kind::called:
    case Kind::came:
    case Kind::ended:
      return calls[graph_.row(n)];
    case Kind::work: {
      if (calls.empty()) return {};
      const std::vector<std::int64_t>& came = run_.ranks[rank].calls.came_ns;
      const auto next = std::ranges::lower_bound(came, graph_.at_ns[n]) - came.begin();
      return calls[next_call_[rank][std::min(static_cast<std::size_t>(next), calls.size() - 1)]];
    }
    default: {
      const auto mark = marks_at_.find(n);
      return mark == marks_at_.end() ? Position() : mark->second;
    }
  }
}

// Work belongs to a step if the next step's first row comes later.
void Model::find_last_work() {
  for (std::size_t r = 0; r < ends_.size(); ++r) {
    const auto work = graph_.work(r);
    for (std::size_t i = 0; i + 1 < ends_[r].size(); ++i) {
      const std::int64_t next_ns = run_.ranks[r].calls.came_ns[by_call_[r][ends_[r][i + 1].from]];
      const auto next =
          std::ranges::upper_bound(work, next_ns, {}, [&](Node n) { return graph_.at_ns[n]; });
      const auto before = static_cast<Node>(next - work.begin());
      if (before != 0) ends_[r][i].work = graph_.works[r].first + before - 1;
    }
  }
}

bool Model::follows(std::int64_t before, std::int64_t step) const {
  return std::ranges::any_of(run_.ranks, [&](const run::Rank& rank) {
    const auto at = std::ranges::lower_bound(rank.steps, step, {}, &run::Step::number);
    return at != rank.steps.begin() && at != rank.steps.end() && at->number == step &&
           std::prev(at)->number == before && (!rank.windows || before + 1 == step);
  });
}

StepsNs Model::steps_ns(std::span<const double> at_ns) const {
  StepsNs last;  // by step: when the last rank ended it
  for (std::size_t r = 0; r < ends_.size(); ++r) {
    for (const End& end : ends_[r]) {
      const Node first = graph_.ended(r, by_call_[r][end.from]);
      double at =
          std::max({at_ns[first], at_ns[end.at.value_or(first)], at_ns[end.work.value_or(first)]});
      for (std::size_t i = end.from + 1; i < end.to; ++i) {
        at = std::max(at, at_ns[graph_.ended(r, by_call_[r][i])]);
      }
      const auto [known, fresh] = last.try_emplace(end.step, at);
      if (!fresh) known->second = std::max(known->second, at);
    }
  }
  StepsNs all;
  for (auto before = last.begin(); before != last.end() && std::next(before) != last.end();
       ++before) {
    const auto& [step, ns] = *std::next(before);
    if (follows(before->first, step)) all[step] = ns - before->second;
  }
  return all;
}

}  // namespace tprof::graph
