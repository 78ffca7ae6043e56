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

}  // namespace

double mean_of(const StepsNs& steps) {
  double sum = 0;
  for (const auto& [step, ns] : steps) sum += ns;
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

Model::Model(const run::Lines& lines, const steps::Found& found, std::uint64_t most_calls)
    : run_(run::load(lines, parts_of(lines.job(), found, most_calls))),
      graph_(graph_of(run_)),
      found_(found),
      positions_(graph_.size()) {
  for (std::size_t r = 0; r < run_.ranks.size(); ++r) {
    const run::Rank& rank = run_.ranks[r];
    std::vector<End>& ends = ends_.emplace_back();
    find_positions_of_calls(r);
    for (std::size_t i = 0; i < rank.calls.size(); ++i) {
      const std::int64_t step = positions_[graph_.called[r][i]].step;
      if (step == Position::kNoStep) continue;
      const Node here = graph_.ended[r][i];
      const auto end = std::ranges::lower_bound(ends, step, {}, &End::step);
      if (end == ends.end() || end->step != step) {
        ends.insert(end, {step, here});
      } else if (graph_.at_ns[here] > graph_.at_ns[end->node]) {
        end->node = here;
      }
    }
  }
  find_positions_of_work();
  leave_out_hosts_ahead();
  measured_ns_ = steps_ns(std::vector<double>(graph_.at_ns.begin(), graph_.at_ns.end()));
  replayed_ns_ = steps_ns(replay(graph_));
}

std::int64_t Model::step_at(std::size_t rank, std::int64_t ns) const {
  const auto steps = found_.ranks.find(run_.ranks[rank].process);
  if (steps == found_.ranks.end()) return Position::kNoStep;
  const steps::Interval* in = steps::interval_at(steps->second, ns - run_.ranks[rank].zero_ns);
  return in == nullptr ? Position::kNoStep : in->step;
}

void Model::find_positions_of_calls(std::size_t rank) {
  const run::Calls& c = run_.ranks[rank].calls;
  std::vector<std::size_t>& by_call = by_call_.emplace_back(c.size());
  std::iota(by_call.begin(), by_call.end(), std::size_t{0});
  std::ranges::stable_sort(by_call, {}, [&](std::size_t i) { return c.called_ns[i]; });
  Position at;
  for (const std::size_t i : by_call) {
    const std::int64_t step = step_at(rank, c.called_ns[i]);
    at = {step, step == at.step ? at.call + 1 : 0};
    for (const auto* nodes : {&graph_.called, &graph_.came, &graph_.ended}) {
      positions_[(*nodes)[rank][i]] = at;
    }
  }
}

void Model::find_positions_of_work() {
  for (Node n = 0; n < graph_.size(); ++n) {
    const std::uint32_t rank = graph_.rank[n];
    const run::Calls& c = run_.ranks[rank].calls;
    if (graph_.kind[n] != Kind::work || c.size() == 0) continue;
    const auto next = std::ranges::lower_bound(c.came_ns, graph_.at_ns[n]);
    const auto row = static_cast<std::size_t>(next - c.came_ns.begin());
    positions_[n] = positions_[graph_.called[rank][std::min(row, c.size() - 1)]];
  }
}

// A host that had gone on to a later step is not waited for in this one.
void Model::leave_out_hosts_ahead() {
  for (Node n = 0; n < graph_.size(); ++n) {
    const std::uint32_t from = graph_.first[n];
    const std::uint32_t to = graph_.first[n + 1];
    const std::int64_t step = positions_[n].step;
    if (step == Position::kNoStep || to - from < 2) continue;
    bool ahead = false;
    for (std::uint32_t i = from; i < to; ++i) {
      if (graph_.wait[i] != Wait::launch || positions_[graph_.from[i]].step <= step) continue;
      graph_.lag_ns[i] = kNever;
      ahead = true;
    }
    if (ahead) give_rest(graph_, n);
  }
}

StepsNs Model::steps_ns(std::span<const double> at_ns) const {
  std::map<std::int64_t, std::pair<double, double>> sums;  // by step, and of how many ranks
  for (const std::vector<End>& ends : ends_) {
    for (std::size_t s = 1; s < ends.size(); ++s) {
      auto& [ns, ranks] = sums[ends[s].step];
      ns += at_ns[ends[s].node] - at_ns[ends[s - 1].node];
      ++ranks;
    }
  }
  StepsNs all;
  for (const auto& [step, sum] : sums) all[step] = sum.first / sum.second;
  return all;
}

double Model::work_ns(std::size_t rank) const {
  const std::vector<End>& ends = ends_[rank];
  if (ends.size() < 2) return 0;
  double ns = 0;
  for (const run::Interval& w : run_.ranks[rank].work) {
    const std::int64_t from = std::max(w.from_ns, graph_.at_ns[ends.front().node]);
    const std::int64_t to = std::min(w.to_ns, graph_.at_ns[ends.back().node]);
    ns += static_cast<double>(std::max<std::int64_t>(0, to - from));
  }
  return ns / static_cast<double>(ends.size() - 1);
}

}  // namespace tprof::graph
