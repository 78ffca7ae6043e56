#include "graph/model.h"

#include <algorithm>
#include <numeric>

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

Model::Model(const job::Job& job, const read::Traces& traces, const steps::Found& found,
             std::uint64_t most_calls)
    : run_(run::load(job, traces, parts_of(job, found, most_calls))),
      graph_(graph_of(run_)),
      positions_(graph_.size()) {
  for (std::size_t r = 0; r < run_.ranks.size(); ++r) {
    const run::Rank& rank = run_.ranks[r];
    Ends& ends = ends_.emplace_back();
    const auto steps = found.ranks.find(rank.process);
    if (steps == found.ranks.end()) continue;
    find_positions_of_calls(r, steps->second);
    std::vector<Node> last(steps->second.size(), UINT32_MAX);
    for (std::size_t i = 0; i < rank.calls.size(); ++i) {
      const steps::Interval* in =
          steps::interval_at(steps->second, rank.calls.called_ns[i] - rank.zero_ns);
      if (in == nullptr) continue;
      Node& end = last[static_cast<std::size_t>(in - steps->second.data())];
      const Node here = graph_.ended[r][i];
      if (end == UINT32_MAX || graph_.at_ns[here] > graph_.at_ns[end]) end = here;
    }
    for (std::size_t s = 0, first = SIZE_MAX; s < last.size(); ++s) {
      if (last[s] == UINT32_MAX) continue;
      if (first == SIZE_MAX) {
        first = s;
        ends.first = last[s];
      }
      ends.last = last[s];
      ends.steps = s - first;
    }
  }
  find_positions_of_work();
  measured_ns_ = step_ns(std::vector<double>(graph_.at_ns.begin(), graph_.at_ns.end()));
  replayed_ns_ = step_ns(replay(graph_, graph_.lag_ns));
}

void Model::find_positions_of_calls(std::size_t rank, const std::vector<steps::Interval>& steps) {
  const run::Calls& c = run_.ranks[rank].calls;
  std::vector<std::size_t> by_call(c.size());
  std::iota(by_call.begin(), by_call.end(), std::size_t{0});
  std::ranges::stable_sort(by_call, {}, [&](std::size_t i) { return c.called_ns[i]; });
  Position at;
  for (const std::size_t i : by_call) {
    const steps::Interval* in =
        steps::interval_at(steps, c.called_ns[i] - run_.ranks[rank].zero_ns);
    const std::int64_t step = in == nullptr ? Position::kNoStep : in->step;
    at = {step, step == at.step ? at.call + 1 : 0};
    positions_[graph_.called[rank][i]] = at;
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

double Model::step_ns(std::span<const double> at_ns) const {
  double sum = 0;
  std::size_t ranks = 0;
  for (const Ends& e : ends_) {
    if (e.steps == 0) continue;
    sum += (at_ns[e.last] - at_ns[e.first]) / static_cast<double>(e.steps);
    ++ranks;
  }
  return ranks == 0 ? 0 : sum / static_cast<double>(ranks);
}

double Model::work_ns(std::size_t rank) const {
  const Ends& e = ends_[rank];
  if (e.steps == 0) return 0;
  double ns = 0;
  for (const run::Interval& w : run_.ranks[rank].work) {
    const std::int64_t from = std::max(w.from_ns, graph_.at_ns[e.first]);
    const std::int64_t to = std::min(w.to_ns, graph_.at_ns[e.last]);
    ns += static_cast<double>(std::max<std::int64_t>(0, to - from));
  }
  return ns / static_cast<double>(e.steps);
}

}  // namespace tprof::graph
