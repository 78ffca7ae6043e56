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
      step_ns_(model_.replayed_ns()),
      scale_(e.step_ns / model_.replayed_ns()),
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
  std::map<graph::Node, std::uint32_t> launches;  // since a call
  for (graph::Node n = 0; n < g.size(); ++n) {
    const std::size_t rank = rank_of[g.rank[n]];
    const graph::Position& at = model_.position(n);
    if (rank == SIZE_MAX || at.step == graph::Position::kNoStep) continue;
    for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
      Edge edge{.edge = i, .rank = rank, .step = at.step, .call = at.call};
      switch (g.wait[i]) {
        case graph::Wait::computes:
          work_.push_back(edge);
          break;
        case graph::Wait::host:
          host_.push_back(edge);
          break;
        case graph::Wait::launch:
          edge.call = model_.position(g.from[i]).call;
          edge.launch = ++launches[g.from[i]];
          host_.push_back(edge);
          break;
        case graph::Wait::waited:  // from then on it is the host's
          edge.launch = g.kind[n] == graph::Kind::work ? UINT32_MAX : UINT32_MAX - 1;
          host_.push_back(edge);
          break;
        default:
          break;
      }
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
  const auto of_rank = [](const Edge& at) { return HostPlace{at.rank, at.call, at.launch}; };
  std::map<HostPlace, std::vector<double>> lags;
  for (const Edge& at : host_) lags[of_rank(at)].push_back(lags_[at.edge]);
  std::map<HostPlace, double> usual;
  std::map<HostPlace, std::vector<double>> of_stage;
  for (auto& [place, each] : lags) {
    const auto [rank, call, launch] = place;
    usual[place] = median(std::move(each));
    of_stage[{stage_of[rank], call, launch}].push_back(usual[place]);
  }
  for (Edge& at : host_) {
    at.usual_ns = usual.at(of_rank(at));
    const std::vector<double>& all = of_stage.at({stage_of[at.rank], at.call, at.launch});
    at.more_ns = std::max(0.0, at.usual_ns - quantile(all, kUsual));
  }
}

std::vector<double> Replays::changed(const SlowRanks& ranks) const {
  const auto is_slow = [&](std::size_t r) { return std::ranges::binary_search(ranks.slow, r); };
  std::set<std::int64_t> steps;
  for (const std::size_t place : ranks.steps) steps.insert(e_.times.steps[e_.steps[place]]);
  std::vector<double> lags = lags_;
  if (ranks.part != Part::compute) {
    for (const Edge& at : host_) {
      double& lag = lags[at.edge];
      if (!is_slow(at.rank)) continue;
      if (steps.empty()) lag = std::max(0.0, lag - at.more_ns);
      if (steps.contains(at.step)) lag = std::min(lag, at.usual_ns);
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

double Replays::saves(const SlowRanks& ranks) const {
  return scale_ * (step_ns_ - model_.step_ns(replay(model_.graph(), changed(ranks))));
}

double Replays::error_ns() const {
  return scale_ * std::abs(model_.replayed_ns() - model_.measured_ns());
}

void Replays::mend(const SlowRanks& ranks) {
  lags_ = changed(ranks);
  step_ns_ = model_.step_ns(replay(model_.graph(), lags_));
  if (ranks.part != Part::compute || !ranks.steps.empty()) return;
  for (const std::size_t r : ranks.slow) work_ns_[r] = std::min(work_ns_[r], usual_work_ns_);
}

std::vector<std::pair<SlowRanks, double>> Replays::slow_devices(const std::vector<SlowRanks>& sets,
                                                                double least_ns) {
  std::vector<std::pair<SlowRanks, double>> found;
  while (true) {
    Places longest(work_ns_.size());
    std::iota(longest.begin(), longest.end(), std::size_t{0});
    std::ranges::sort(longest, std::ranges::greater(), [&](std::size_t r) { return work_ns_[r]; });
    longest.resize(std::min(longest.size(), kMostRanks));
    std::vector<std::pair<SlowRanks, double>> tried;
    for (const std::size_t r : longest) {
      if (work_ns_[r] > usual_work_ns_) tried.push_back({{.slow = {r}}, 0});
    }
    for (const SlowRanks& set : sets) tried.emplace_back(set, 0);
    for (auto& [ranks, ns] : tried) ns = saves(ranks);
    const auto most = std::ranges::max_element(tried, {}, &std::pair<SlowRanks, double>::second);
    if (most == tried.end() || most->second < least_ns) return found;
    const double enough = most->second - least_ns;
    // The fewest ranks that save nearly as much are to blame: the others are only beside them.
    std::erase_if(tried, [&](const auto& t) { return t.second < enough; });
    found.push_back(*std::ranges::min_element(
        tried, {}, [](const auto& t) { return std::pair(t.first.slow.size(), -t.second); }));
    mend(found.back().first);
  }
}

}  // namespace tprof::why
