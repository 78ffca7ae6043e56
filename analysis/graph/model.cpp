#include "graph/model.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "job/hosts.h"

namespace tprof::graph {

namespace {

// A change has to go through all ranks before its saving shows.
constexpr std::size_t kFewestSteps = 8;

// The steps in the middle of the job that have so many calls; no time at all if these are few.
run::Parts parts_of(const job::Job& job, const steps::Found& found, std::uint64_t most_calls) {
  std::uint64_t calls = 0;
  for (const read::Process* p : job.processes) {
    for (const read::Row& row : read::rows_of(*p)) {
      if (row.comm) calls = read::saturated_sum(calls, row.amounts.calls);
    }
  }
  run::Parts parts;
  if (calls <= most_calls) return parts;
  const double share = static_cast<double>(most_calls) / static_cast<double>(calls);
  for (const auto& [rank, steps] : found.ranks) {
    const auto n = static_cast<std::size_t>(share * static_cast<double>(steps.size()));
    const std::size_t from = (steps.size() - n) / 2;
    parts[rank] = n < kFewestSteps ? run::Interval()
                                   : run::Interval{steps[from].from_ns, steps[from + n - 1].to_ns};
  }
  return parts;
}

run::Steps steps_of(const steps::Found& found) {
  run::Steps all;
  for (const auto& [rank, steps] : found.ranks) {
    for (const steps::Interval& in : steps) {
      all[rank].push_back({.number = in.step, .from_ns = in.from_ns, .to_ns = in.to_ns});
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
  return run::load(lines, steps_of(found), parts_of(lines.job(), found, most_calls));
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
      if (end != ends.end() && end->step == step) end->at = n;
    }
  }
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
  std::vector<std::size_t>& by_call = by_call_.emplace_back(c.size());
  std::iota(by_call.begin(), by_call.end(), std::size_t{0});
  std::ranges::stable_sort(by_call, {}, [&](std::size_t i) { return c.called_ns[i]; });
  std::vector<Position>& calls_at = calls_at_.emplace_back(c.size());
  Position at;
  auto call = by_call.begin();
  for (const Node n : graph_.host[rank]) {
    // A mark ends the step before it.
    if (graph_.kind[n] == Kind::mark) {
      if (at.step != Position::kNoStep) marks_at_[n] = {at.step, at.call + 1};
      continue;
    }
    const std::size_t i = *call++;
    const std::int64_t step = step_at(rank, c.called_ns[i]);
    calls_at[i] = at = {step, step == at.step ? at.call + 1 : 0};
  }
}

Position Model::position(Node n) const {
  const std::uint32_t rank = graph_.rank[n];
  const std::vector<Position>& calls = calls_at_[rank];
  switch (graph_.kind[n]) {
    case Kind::called:
    case Kind::came:
    case Kind::ended:
      return calls[(n - graph_.rows[rank]) / 3];
    case Kind::work: {
      if (calls.empty()) return {};
      const std::vector<std::int64_t>& came = run_.ranks[rank].calls.came_ns;
      const auto next = std::ranges::lower_bound(came, graph_.at_ns[n]) - came.begin();
      return calls[std::min(static_cast<std::size_t>(next), calls.size() - 1)];
    }
    default: {
      const auto mark = marks_at_.find(n);
      return mark == marks_at_.end() ? Position() : mark->second;
    }
  }
}

StepsNs Model::steps_ns(std::span<const double> at_ns) const {
  StepsNs last;  // by step: when the last rank had ended it
  for (std::size_t r = 0; r < ends_.size(); ++r) {
    for (const End& end : ends_[r]) {
      const Node first = graph_.ended(r, by_call_[r][end.from]);
      double at = std::max(at_ns[first], at_ns[end.at.value_or(first)]);
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
    all[step] = ns - before->second;
  }
  return all;
}

}  // namespace tprof::graph
