#include "why/replays.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "why/numbers.h"

namespace tprof::why {
namespace {

constexpr std::size_t kMostRanks = 16;  // are tried by themselves: those that compute longest

}  // namespace

Replays::Replays(const Evidence& e, const std::vector<Places>& stages)
    : e_(e),
      model_(*e.model),
      lags_(model_.graph().lag_ns),
      steps_ns_(model_.replayed_ns()),
      work_ns_(e.times.ranks.size()) {
  find_edges();
  find_usual_hosts(stages);
}

void Replays::find_edges() {
  std::map<const read::Process*, std::size_t> here;
  for (std::size_t r = 0; r < e_.times.ranks.size(); ++r) here[e_.times.ranks[r]] = r;
  const graph::Graph& g = model_.graph();
  std::vector<std::size_t> rank_of;
  std::vector<double> work;
  for (std::size_t m = 0; m < model_.run().ranks.size(); ++m) {
    const auto place = here.find(model_.run().ranks[m].process);
    rank_of.push_back(place == here.end() ? SIZE_MAX : place->second);
    if (place != here.end()) work_ns_[place->second] = model_.work_ns(m);
  }
  usual_work_ns_ = quantile(work_ns_, kUsual);
  // How often work has gone on before a call, by rank and step.
  std::map<std::tuple<std::size_t, std::int64_t, std::uint32_t>, std::uint32_t> gaps;
  for (graph::Node n = 0; n < g.size(); ++n) {
    const std::size_t rank = rank_of[g.rank[n]];
    const graph::Position& at = model_.position(n);
    if (rank == SIZE_MAX || at.step == graph::Position::kNoStep) continue;
    for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
      Edge edge{.edge = i, .rank = rank, .step = at.step, .call = at.call};
      edge.from_step = model_.position(g.from[i]).step;
      switch (g.wait[i]) {
        case graph::Wait::computes:
          work_.push_back(edge);
          continue;
        case graph::Wait::host:
          break;
        case graph::Wait::launch:
        case graph::Wait::barrier:  // what is behind its end is the host's, who launched later
          edge.behind_call = g.wait[i] == graph::Wait::barrier;
          edge.gap = ++gaps[{rank, at.step, at.call}];
          break;
        case graph::Wait::waited:  // from then on it is the host's
          edge.gap = g.kind[n] == graph::Kind::work ? ++gaps[{rank, at.step, at.call}] : UINT32_MAX;
          break;
        default:
          continue;
      }
      host_.push_back(edge);
    }
  }
}

void Replays::find_usual_hosts(const std::vector<Places>& stages) {
  // Ranks whose stage is not known are compared with each other.
  std::vector<std::size_t> stage_of(e_.times.ranks.size(), SIZE_MAX);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const std::size_t r : stages[s]) stage_of[r] = s;
  }
  using HostPlace = std::tuple<std::size_t, std::uint32_t, std::uint32_t>;  // of a rank, of a stage
  const auto of_rank = [](const Edge& at) { return HostPlace{at.rank, at.call, at.gap}; };
  std::map<HostPlace, std::vector<double>> lags;
  std::map<std::size_t, std::set<std::int64_t>> steps;     // by rank
  std::map<std::size_t, std::set<std::size_t>> of_stages;  // the ranks
  for (const Edge& at : host_) {
    lags[of_rank(at)].push_back(lags_[at.edge]);
    steps[at.rank].insert(at.step);
    of_stages[stage_of[at.rank]].insert(at.rank);
  }
  std::map<HostPlace, double> usual;
  std::map<HostPlace, double> means;
  std::map<HostPlace, std::vector<double>> of_stage;
  for (auto& [place, each] : lags) {
    const auto [rank, call, gap] = place;
    // Where work did not stand still, nobody waited for a launch.
    each.resize(std::max(each.size(), steps[rank].size()));
    means[place] = mean(each);
    usual[place] = median(std::move(each));
    of_stage[{stage_of[rank], call, gap}].push_back(means[place]);
  }
  for (Edge& at : host_) {
    at.usual_ns = usual.at(of_rank(at));
    std::vector<double> all = of_stage.at({stage_of[at.rank], at.call, at.gap});
    all.resize(of_stages[stage_of[at.rank]].size());
    const double own = means.at(of_rank(at));
    at.as_others = own == 0 ? 1 : std::min(1.0, median(std::move(all)) / own);
  }
}

std::set<std::int64_t> Replays::steps_of(const SlowRanks& ranks) const {
  std::set<std::int64_t> steps;
  for (const std::size_t place : ranks.steps) steps.insert(e_.times.steps[e_.steps[place]]);
  return steps;
}

std::vector<double> Replays::changed(const SlowRanks& ranks) const {
  const auto is_slow = [&](std::size_t r) { return std::ranges::binary_search(ranks.slow, r); };
  const std::set<std::int64_t> steps = steps_of(ranks);
  std::vector<double> lags = lags_;
  if (ranks.part != Part::compute) {
    for (const Edge& at : host_) {
      double& lag = lags[at.edge];
      if (!is_slow(at.rank)) continue;
      // How long work stands still behind a call differs a little between ranks' devices.
      if (steps.empty() && !at.behind_call) lag *= at.as_others;
      // What lies between two steps may be of either.
      if (steps.contains(at.step) || steps.contains(at.from_step)) lag = std::min(lag, at.usual_ns);
    }
    return lags;
  }
  std::map<std::size_t, std::map<std::int64_t, double>> in_steps;  // by rank
  for (const Edge& at : work_) {
    if (!steps.empty() && is_slow(at.rank)) in_steps[at.rank][at.step] += lags_[at.edge];
  }
  std::map<std::size_t, double> usual;
  for (const auto& [rank, each] : in_steps) {
    std::vector<double> all;
    for (const auto& [step, ns] : each) all.push_back(ns);
    usual[rank] = median(std::move(all));
  }
  for (const Edge& at : work_) {
    if (!is_slow(at.rank) || work_ns_[at.rank] == 0) continue;
    if (steps.empty()) lags[at.edge] *= std::min(1.0, usual_work_ns_ / work_ns_[at.rank]);
    if (steps.contains(at.step)) {
      lags[at.edge] *= std::min(1.0, usual[at.rank] / in_steps[at.rank][at.step]);
    }
  }
  return lags;
}

Saving Replays::saves(const SlowRanks& ranks) const {
  const auto at = graph::replay(model_.graph(), changed(ranks));
  return saving_of(model_, steps_ns_, model_.steps_ns(at), steps_of(ranks));
}

void Replays::mend(const SlowRanks& ranks) {
  lags_ = changed(ranks);
  steps_ns_ = model_.steps_ns(replay(model_.graph(), lags_));
  if (ranks.part != Part::compute || !ranks.steps.empty()) return;
  for (const std::size_t r : ranks.slow) work_ns_[r] = std::min(work_ns_[r], usual_work_ns_);
}

std::vector<std::pair<SlowRanks, Saving>> Replays::slow_devices(const Places& slow,
                                                                const std::vector<SlowRanks>& sets,
                                                                double least_ns) {
  std::vector<std::pair<SlowRanks, Saving>> found;
  while (true) {
    Places longest = slow;
    std::erase_if(longest, [&](std::size_t r) { return work_ns_[r] <= usual_work_ns_; });
    std::ranges::sort(longest, std::ranges::greater(), [&](std::size_t r) { return work_ns_[r]; });
    longest.resize(std::min(longest.size(), kMostRanks));
    std::vector<std::pair<SlowRanks, Saving>> tried;
    for (const SlowRanks& set : sets) tried.emplace_back(set, Saving());
    Places first;  // those that compute longest may all have to be mended before anything is saved
    for (const std::size_t r : longest) {
      tried.push_back({{.slow = {r}}, {}});
      first.insert(std::ranges::upper_bound(first, r), r);
      if (first.size() > 1) tried.push_back({{.slow = first}, {}});
    }
    for (auto& [ranks, saving] : tried) saving = saves(ranks);
    const auto saved = [](const auto& t) { return t.second.ns; };
    const auto most = std::ranges::max_element(tried, {}, saved);
    if (most == tried.end() || most->second.ns < least_ns) return found;
    const double enough = most->second.ns - least_ns;
    // The fewest ranks that save nearly as much are to blame: the others are only beside them.
    std::erase_if(tried, [&](const auto& t) { return t.second.ns < enough; });
    found.push_back(*std::ranges::min_element(
        tried, {}, [](const auto& t) { return std::pair(t.first.slow.size(), -t.second.ns); }));
    mend(found.back().first);
  }
}

}  // namespace tprof::why
