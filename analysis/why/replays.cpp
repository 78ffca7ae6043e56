#include "why/replays.h"

#include <algorithm>
#include <functional>
#include <map>

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
  for (std::size_t m = 0; m < model_.run().ranks.size(); ++m) {
    const auto place = here.find(model_.run().ranks[m].process);
    rank_of.push_back(place == here.end() ? SIZE_MAX : place->second);
    if (place != here.end()) work_ns_[place->second] = model_.work_ns(m);
  }
  usual_work_ns_ = quantile(work_ns_, kUsual);
  for (graph::Node n = 0; n < g.size(); ++n) {
    const std::size_t rank = rank_of[g.rank[n]];
    const graph::Position& at = model_.position(n);
    if (rank == SIZE_MAX || at.step == graph::Position::kNoStep) continue;
    for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
      Edge edge{.edge = i, .rank = rank, .step = at.step};
      edge.from_step = model_.step_at(g.rank[n], g.at_ns[g.from[i]]);
      switch (g.wait[i]) {
        case graph::Wait::computes:
          work_.push_back(edge);
          continue;
        case graph::Wait::barrier:
          if (is_ahead(g.rank[n], g.at_ns[g.from[i]], g.at_ns[n])) continue;
          break;
        case graph::Wait::host:
        case graph::Wait::launch:
        case graph::Wait::waited:  // from then on it is the host's
          break;
        default:
          continue;
      }
      edge.call = next_call(g.rank[n], g.at_ns[g.from[i]]);
      edge.calls = g.wait[i] == graph::Wait::host;
      host_.push_back(edge);
    }
  }
}

// The host's next call after that.
graph::Position Replays::next_call(std::size_t rank, std::int64_t ns) const {
  const auto& by_call = model_.by_call(rank);
  const auto next = std::ranges::upper_bound(
      by_call, ns, {}, [&](std::size_t i) { return model_.run().ranks[rank].calls.called_ns[i]; });
  return next == by_call.end() ? graph::Position()
                               : model_.position(model_.graph().called[rank][*next]);
}

// True if at `from_ns` the host had called what came to the device next behind `to_ns`: what the
// device did in between did not wait for it.
bool Replays::is_ahead(std::size_t rank, std::int64_t from_ns, std::int64_t to_ns) const {
  const run::Calls& c = model_.run().ranks[rank].calls;
  const auto next = std::ranges::upper_bound(c.came_ns, to_ns) - c.came_ns.begin();
  return next < std::ssize(c.came_ns) && c.called_ns[static_cast<std::size_t>(next)] <= from_ns;
}

void Replays::find_usual_hosts(const std::vector<Places>& stages) {
  // Ranks whose stage is not known are compared with each other.
  std::vector<std::size_t> stage_of(e_.times.ranks.size(), SIZE_MAX);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const std::size_t r : stages[s]) stage_of[r] = s;
  }
  // A host needs so long from its last call to this one, by rank and place in the step.
  std::map<std::pair<std::size_t, std::uint32_t>, std::map<std::int64_t, double>> needs;
  for (const Edge& at : host_) {
    if (at.calls) needs[{at.rank, at.call.call}][at.call.step] = lags_[at.edge];
  }
  struct Usual {
    double mean = 0;
    double median = 0;
  };
  std::map<std::pair<std::size_t, std::uint32_t>, Usual> usual;
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<double>> of_stage;
  for (const auto& [place, by_step] : needs) {
    std::vector<double> each;
    for (const auto& [step, ns] : by_step) each.push_back(ns);
    Usual& its = usual[place];
    its.mean = mean(each);
    its.median = median(std::move(each));
    of_stage[{stage_of[place.first], place.second}].push_back(its.mean);
  }
  for (Edge& at : host_) {
    const auto its = usual.find({at.rank, at.call.call});
    if (its == usual.end()) continue;
    const auto times = [](double of, double needs_ns) {
      return needs_ns == 0 ? 1.0 : std::min(1.0, of / needs_ns);
    };
    at.as_others = times(median(of_stage.at({stage_of[at.rank], at.call.call})), its->second.mean);
    const auto& by_step = needs.at(its->first);
    const auto here = by_step.find(at.call.step);
    if (here != by_step.end()) at.as_usual = times(its->second.median, here->second);
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
      if (steps.empty()) lag *= at.as_others;
      // A lag between two steps may be of either.
      if (steps.contains(at.step) || steps.contains(at.from_step)) lag *= at.as_usual;
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
