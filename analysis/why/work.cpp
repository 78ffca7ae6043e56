// Finds how much the ranks of a stage have computed at each place of a step: where a call waits for
// work, where work waits for a call, and the step's end.
#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "why/edges.h"

namespace tprof::why {
namespace {

using graph::Node;
using graph::Wait;

// A call number, and whether its end is meant.
using CallOf = std::pair<std::uint32_t, bool>;
constexpr CallOf kEnd{UINT32_MAX, true};

// Returns the places by work node, ascending.
std::vector<std::pair<Node, CallOf>> calls_at_work(const graph::Model& model) {
  const graph::Graph& g = model.graph();
  std::vector<std::pair<Node, CallOf>> places;
  for (Node n = 0; n < g.size(); ++n) {
    for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
      const bool comes = g.wait[i] == Wait::place;
      if (!comes && g.wait[i] != Wait::barrier) continue;
      const auto [work, call] = comes ? std::pair(g.from[i], n) : std::pair(n, g.from[i]);
      if (model.run().ranks[g.rank[call]].calls.copies(g.row(call))) continue;
      if (model.position(work).step == model.position(call).step) {
        places.push_back({work, {model.position(call).call, !comes}});
      }
    }
  }
  std::ranges::sort(places);
  return places;
}

// A rank computes this between two places of a step, on the kernel edges `from` up to `to`.
struct Stretch {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  CallOf place{};  // at its end
  double ns = 0;
};

// By rank and step; the last of a step ends there.
std::vector<Stretch> stretches_of(const Evidence& e, const graph::Lags& lags, const Edges& of) {
  const graph::Graph& g = e.model->graph();
  const auto places = calls_at_work(*e.model);
  const std::vector<Edge>& edges = of.of(Of::kernels);
  std::vector<Stretch> all;
  auto place = places.begin();
  Stretch now;
  const auto end = [&](std::uint32_t edge, CallOf at) {
    now.to = edge;
    now.place = at;
    all.push_back(now);
    now = {.from = edge};
  };
  for (std::uint32_t k = 0; k < edges.size();) {
    const Edge& at = edges[k];
    now.ns += static_cast<double>(lags[at.edge]);
    const bool last = ++k == edges.size();
    // The work is there until what it does next is done.
    const auto next =
        last ? g.first.end() - 1 : std::ranges::upper_bound(g.first, edges[k].edge) - 1;
    for (; place != places.end() && place->first < next - g.first.begin(); ++place) {
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

// A step in which a rank computes more than usually does so in the stretches that take longer.
void find_usual_work(const Evidence& e, Edges& of) {
  std::vector<Edge>& edges = of.edges[Edges::index(Of::kernels)];
  const Needs& needs = of.needs_of(Of::kernels);
  const std::vector<Stretch> all = stretches_of(e, e.model->graph().lag_ns, of);
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
void find_even_work(const Evidence& e, const graph::Lags& lags, Edges& of) {
  std::vector<Edge>& edges = of.edges[Edges::index(Of::kernels)];
  struct Done : Stretch {
    double done_ns = 0;  // of its step until then
  };
  std::vector<Done> all;
  double ns = 0;
  for (const Stretch& s : stretches_of(e, lags, of)) {
    all.push_back({s, ns += s.ns});
    if (s.place == kEnd) ns = 0;
  }

  std::vector<std::size_t> ranks_of_stage(of.stages.size() + 1);
  for (const std::size_t stage : of.stage_of) ++ranks_of_stage[stage];
  std::map<std::pair<std::size_t, std::uint32_t>, Means> means;  // by stage and step
  const auto means_of = [&](const Done& d) -> Means& {
    const Edge& edge = edges[d.to - 1];
    return means[{of.stage_of[edge.owner], edge.step}];
  };
  for (const Done& d : all) means_of(d)[d.place].add(d.done_ns);
  // The share of a step's work done at a place, by stage and number of places.
  std::map<std::pair<std::size_t, std::size_t>, Means> shares;
  for (auto& [group, at] : means) {
    const auto& [stage, step] = group;
    const std::size_t ranks = ranks_of_stage[stage];
    std::erase_if(at, [&](const auto& mean) { return mean.second.n != ranks; });
    if (!at.contains(kEnd) || step == Edge::kNone) at.clear();
    for (const auto& [call, mean] : at) {
      shares[{stage, at.size()}][call].add(mean.mean() / at.at(kEnd).mean());
    }
  }
  Done before;
  double even_before = 0;
  for (const Done& d : all) {
    const Means& at = means_of(d);
    if (!at.contains(d.place) && d.place != kEnd) continue;
    double even = d.done_ns;
    if (at.contains(d.place)) {
      const Means& share = shares.at({of.stage_of[edges[d.to - 1].owner], at.size()});
      even = share.at(d.place).mean() * at.at(kEnd).mean();
    }
    const double did = d.done_ns - before.done_ns;
    const double times = did > 0 ? std::max(0.0, even - even_before) / did : 1;
    for (std::uint32_t k = before.to; k < d.to; ++k) {
      edges[k].as_even = static_cast<float>(times);
    }
    before = d;
    if (d.place == kEnd) before.done_ns = 0;
    even_before = d.place == kEnd ? 0 : even;
  }
}

}  // namespace tprof::why
