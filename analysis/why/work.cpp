#include "why/work.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "why/numbers.h"

namespace tprof::why {
namespace {

using graph::Node;
using graph::Wait;
using CallOf = Work::CallOf;
using Stretch = Work::Stretch;

constexpr CallOf kEnd{UINT32_MAX, true};

// Returns the places with their nodes, by rank and time.
std::vector<std::pair<Node, CallOf>> calls_at_work(const graph::Model& model) {
  const graph::Graph& g = model.graph();
  std::vector<std::pair<Node, CallOf>> places;
  for (Node n = 0; n < g.size(); ++n) {
    for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
      const bool comes = g.wait[i] == Wait::place;
      if (!comes && g.wait[i] != Wait::barrier) continue;
      const auto [work, call] = comes ? std::pair(g.from[i], n) : std::pair(n, g.from[i]);
      if (g.kind[work] != graph::Kind::work) continue;  // it stood still until another call ended
      if (model.run().ranks[g.rank[call]].calls.copies(g.row(call))) continue;
      if (model.position(work).step == model.position(call).step) {
        places.push_back({work, {model.position(call).call, !comes}});
      }
    }
  }
  std::ranges::sort(places, {}, [&](const auto& place) {
    return std::tuple(g.rank[place.first], g.at_ns[place.first], place);
  });
  return places;
}

// By rank and step; the last of a step ends there. Without times.
std::vector<Stretch> stretches_of(const Evidence& e, const Edges& of) {
  const graph::Graph& g = e.model->graph();
  const auto places = calls_at_work(*e.model);
  const std::vector<Edge>& edges = of.of(Of::kernels);
  std::vector<Stretch> all;
  auto place = places.begin();
  std::uint32_t from = 0;
  const auto end = [&](std::uint32_t edge, CallOf at) {
    all.push_back({.from = std::exchange(from, edge), .to = edge, .place = at});
  };
  for (std::uint32_t k = 0; k < edges.size();) {
    const Edge& at = edges[k];
    const bool last = ++k == edges.size();
    // Places up to the next work; those of the rank's end at its last.
    const Node next = last ? static_cast<Node>(g.size()) : g.from[edges[k].edge];
    const auto before_next = [&](Node n) {
      return last ||
             std::tuple(g.rank[n], g.at_ns[n], n) <= std::tuple(g.rank[next], g.at_ns[next], next);
    };
    for (; place != places.end() && before_next(place->first); ++place) {
      if (of.place(e, e.model->position(place->first).step) == at.step) end(k, place->second);
    }
    if (last || edges[k].owner != at.owner || edges[k].step != at.step) end(k, kEnd);
  }
  return all;
}

struct Mean {
  double sum = 0;
  std::size_t n = 0;

  void add(double value) {
    sum += value;
    ++n;
  }
  double mean() const { return sum / static_cast<double>(n); }
};
using Means = std::map<CallOf, Mean>;

}  // namespace

Work::Work(const Evidence& e, const Edges& of)
    : role_of_(of.role_of), stage_of_(of.stage_of), stretches_(stretches_of(e, of)) {
  // A pipeline without replicas has no two ranks that do the same.
  for (std::size_t r = 0; r < stage_of_.size(); ++r) {
    if (of.stages.empty() && sends(e, r)) stage_of_[r] = r;
  }
  for (const std::size_t stage : stage_of_) ++ranks_of_stage_[stage];
  const std::vector<Edge>& edges = of.of(Of::kernels);
  std::map<std::pair<std::size_t, CallOf>, std::size_t> pass;
  for (const Stretch& s : stretches_) {
    const Edge& at = edges[s.to - 1];
    if (at.step != Edge::kNone) ++pass[{stage_of_[at.owner], s.place}];
  }
  std::uint32_t from = 0;
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch& s = stretches_[i];
    const std::size_t stage = stage_of_[edges[s.to - 1].owner];
    const auto times = pass.find({stage, s.place});
    const bool all =
        times != pass.end() && times->second == ranks_of_stage_[stage] * of.steps.size();
    if (all || s.place == kEnd) compared_.push_back({std::exchange(from, s.to), i});
  }
}

void Work::take(const graph::Lags& lags, const Edges& of) {
  const std::vector<Edge>& edges = of.of(Of::kernels);
  double done_ns = 0;
  for (Stretch& s : stretches_) {
    s.ns = 0;
    for (std::uint32_t k = s.from; k < s.to; ++k) s.ns += static_cast<double>(lags[edges[k].edge]);
    s.done_ns = done_ns + s.ns;
    done_ns = s.place == kEnd ? 0 : s.done_ns;
  }
  const auto steps = static_cast<double>(std::max<std::size_t>(of.steps.size(), 1));
  done_.assign(stage_of_.size(), {});
  for (const Compared& c : compared_) {
    const Stretch& s = stretches_[c.last];
    const Edge& at = edges[s.to - 1];
    if (at.step != Edge::kNone) done_[at.owner][s.place] += s.done_ns / steps;
  }
}

// Kernels of a whole host or stage get the same factors, and keep their differences.
Work::ByPlace Work::times_as_others(const Slow& slow, std::size_t rank) const {
  Places own;
  Places others;
  Places of_other_stages;
  for (std::size_t r = 0; r < done_.size(); ++r) {
    if (role_of_[r] != role_of_[rank]) continue;
    const bool alike = stage_of_[r] == stage_of_[rank];
    if (!slow.has(r)) (alike ? others : of_other_stages).push_back(r);
    if (slow.has(r) && alike) own.push_back(r);
  }
  const bool comparable = !others.empty();
  if (!comparable) others = std::move(of_other_stages);
  if (others.empty()) return {};
  const auto each = [&](const Places& ranks, CallOf place) {
    std::vector<double> all;
    for (const std::size_t r : ranks) {
      const auto at = done_[r].find(place);
      all.push_back(at == done_[r].end() ? 0 : at->second);
    }
    return all;
  };
  const double usual = median(each(others, kEnd));
  if (!slow.named || mean(each(own, kEnd)) <= usual) own = {rank};
  const double all = mean(each(own, kEnd));
  ByPlace times;
  if (all <= usual) return times;
  struct Until {
    double done = 0;
    CallOf place{};
    double more = 0;  // than others
  };
  std::vector<Until> places;
  for (const auto& [place, done] : done_[rank]) {
    if (!comparable) times[place] = usual / all;
    if (comparable) places.push_back({mean(each(own, place)), place});
  }
  if (places.empty()) return times;
  std::ranges::stable_sort(places, {}, &Until::done);
  // A rank that is ahead at a place and behind at the next only passes these at other times: its
  // excess never shrinks. This is the closest such sequence (Ayer et al. 1955).
  std::vector<std::pair<double, std::size_t>> level;  // and for how many places
  for (const Until& at : places) {
    level.emplace_back(at.done - median(each(others, at.place)), 1);
    while (level.size() > 1 && std::prev(level.end(), 2)->first > level.back().first) {
      const auto [ns, n] = level.back();
      level.pop_back();
      auto& [mean, m] = level.back();
      mean = (mean * static_cast<double>(m) + ns * static_cast<double>(n)) /
             static_cast<double>(m + n);
      m += n;
    }
  }
  auto at = places.begin();
  for (const auto& [ns, n] : level) {
    for (std::size_t k = 0; k < n; ++k) (at++)->more = std::clamp(ns, 0.0, all - usual);
  }
  places.back().more = all - usual;
  Until before;
  double factor = 1;  // places without work between them are passed in any order
  for (const Until& until : places) {
    const double ns = until.done - before.done;
    if (ns > 0) factor = std::max(0.0, 1 - (until.more - before.more) / ns);
    times[until.place] = factor;
    before = until;
  }
  return times;
}

void Work::as_others(const Slow& slow, const Edges& of, graph::Lags& lags) const {
  std::vector<ByPlace> times(done_.size());
  for (const std::size_t r : slow.ranks) times[r] = times_as_others(slow, r);
  const std::vector<Edge>& edges = of.of(Of::kernels);
  for (const Compared& c : compared_) {
    const Stretch& s = stretches_[c.last];
    const ByPlace& its = times[edges[s.to - 1].owner];
    const auto factor = its.find(s.place);
    if (factor == its.end()) continue;
    for (std::uint32_t k = c.from; k < s.to; ++k) {
      lags[edges[k].edge] *= static_cast<graph::Lag>(factor->second);
    }
  }
}

// A step in which a rank computes more than usually does so in the stretches that take longer.
void Work::find_usual(Edges& of) const {
  std::vector<Edge>& edges = of.edges[Edges::index(Of::kernels)];
  const Needs& needs = of.needs_of(Of::kernels);
  const std::vector<Stretch>& all = stretches_;
  const auto at = [&](const Stretch& s) -> Edge& { return edges[s.to - 1]; };
  for (auto first = all.begin(), last = first; first != all.end(); first = last) {
    last = std::find_if(first, all.end(),
                        [&](const Stretch& s) { return at(s).owner != at(*first).owner; });
    const std::span of_rank(first, last);
    std::map<CallOf, Series> takes;
    for (const Stretch& s : of_rank) {
      Series& its = takes.try_emplace(s.place, of.steps.size()).first->second;
      if (at(s).step != Edge::kNone) its[at(s).step] += s.ns;
    }
    std::map<CallOf, double> usual;
    for (auto& [place, series] : takes) usual[place] = quantile(std::move(series), run::kUsual);
    const auto longer = [&](const Stretch& s) { return std::max(0.0, s.ns - usual.at(s.place)); };
    Series longer_in(of.steps.size());
    for (const Stretch& s : of_rank) {
      if (at(s).step != Edge::kNone) longer_in[at(s).step] += longer(s);
    }
    for (const Stretch& s : of_rank) {
      const std::uint32_t step = at(s).step;
      if (step == Edge::kNone || longer(s) == 0) continue;
      const double more = std::clamp(needs.beyond[at(s).owner][step], 0.0, longer_in[step]);
      const double less = longer(s) * more / longer_in[step];
      for (std::uint32_t k = s.from; k < s.to; ++k) {
        edges[k].as_usual = static_cast<float>(1 - less / s.ns);
      }
    }
  }
}

// Batches of different lengths make ranks and micro-batches differ. Even ranks compute the average
// of their stage in the step, and until each place the average share of it.
void Work::find_even(Edges& of) const {
  std::vector<Edge>& edges = of.edges[Edges::index(Of::kernels)];
  std::map<std::pair<std::size_t, std::uint32_t>, Means> means;  // by stage and step
  const auto means_of = [&](const Stretch& s) -> Means& {
    const Edge& edge = edges[s.to - 1];
    return means[{stage_of_[edge.owner], edge.step}];
  };
  for (const Stretch& s : stretches_) means_of(s)[s.place].add(s.done_ns);
  // The usual share of a step's work done at a place, by stage and number of places. A step with an
  // evaluation has other shares.
  std::map<std::pair<std::size_t, std::size_t>, std::map<CallOf, std::vector<double>>> shares;
  for (auto& [group, at] : means) {
    const auto& [stage, step] = group;
    const std::size_t ranks = ranks_of_stage_.at(stage);
    std::erase_if(at, [&](const auto& mean) { return mean.second.n != ranks; });
    if (!at.contains(kEnd) || step == Edge::kNone) at.clear();
    for (const auto& [call, mean] : at) {
      shares[{stage, at.size()}][call].push_back(mean.mean() / at.at(kEnd).mean());
    }
  }
  std::map<std::pair<std::size_t, std::size_t>, std::map<CallOf, double>> usual;
  for (auto& [group, each] : shares) {
    for (auto& [call, of_steps] : each) usual[group][call] = midmean(std::move(of_steps));
  }
  Stretch before;
  double even_before = 0;
  for (const Stretch& s : stretches_) {
    const Means& at = means_of(s);
    if (!at.contains(s.place) && s.place != kEnd) continue;
    double even = s.done_ns;
    if (at.contains(s.place)) {
      const auto& share = usual.at({stage_of_[edges[s.to - 1].owner], at.size()});
      even = share.at(s.place) * at.at(kEnd).mean();
    }
    const double did = s.done_ns - before.done_ns;
    const double times = did > 0 ? std::max(0.0, even - even_before) / did : 1;
    for (std::uint32_t k = before.to; k < s.to; ++k) {
      edges[k].as_ideal = static_cast<float>(times);
    }
    before = s;
    if (s.place == kEnd) before.done_ns = 0;
    even_before = s.place == kEnd ? 0 : even;
  }
}

}  // namespace tprof::why
