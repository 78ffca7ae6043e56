// Finds how much the ranks of a stage have computed when a step has come to each of its places: a
// call that comes when the work is there, or with whose end it goes on, and the step's end. Batches
// of unlike length make ranks differ there, and micro-batches one from another. Even ranks do what
// all do on average in that step, and as much of it until each place as steps do on average.
#include <algorithm>
#include <map>
#include <utility>

#include "why/edges.h"

namespace tprof::why {
namespace {

using graph::Node;
using graph::Wait;

// Which call of the host it is, and whether its end.
using CallOf = std::pair<std::uint32_t, bool>;
constexpr CallOf kEnd{UINT32_MAX, true};

// By node of the work, ascending.
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

// A rank had done so much of its step when it came to a place.
struct Done {
  std::uint32_t edges = 0;  // until then, of all
  CallOf place{};
  double ns = 0;
};

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

void find_even_work(const Evidence& e, const graph::Lags& lags, Edges& of) {
  const graph::Graph& g = e.model->graph();
  const auto places = calls_at_work(*e.model);
  std::vector<Edge>& edges = of.edges[Edges::index(Of::kernels)];
  std::vector<Done> all;
  auto place = places.begin();
  double ns = 0;
  for (std::uint32_t k = 0; k < edges.size();) {
    const Edge& at = edges[k];
    ns += static_cast<double>(lags[at.edge]);
    const bool last = ++k == edges.size();
    // The work is there until what it does next is done.
    const auto next =
        last ? g.first.end() - 1 : std::ranges::upper_bound(g.first, edges[k].edge) - 1;
    for (; place != places.end() && place->first < next - g.first.begin(); ++place) {
      if (of.place(e, e.model->position(place->first).step) == at.step) {
        all.push_back({k, place->second, ns});
      }
    }
    if (!last && edges[k].owner == at.owner && edges[k].step == at.step) continue;
    all.push_back({k, kEnd, std::exchange(ns, 0)});
  }

  std::vector<std::size_t> ranks_of_stage(of.stages.size() + 1);
  for (const std::size_t stage : of.stage_of) ++ranks_of_stage[stage];
  std::map<std::pair<std::size_t, std::uint32_t>, Means> means;  // by stage and step
  const auto means_of = [&](const Done& d) -> Means& {
    const Edge& edge = edges[d.edges - 1];
    return means[{of.stage_of[edge.owner], edge.step}];
  };
  for (const Done& d : all) means_of(d)[d.place].add(d.ns);
  // The share of its work that a step has done at a place, by stage and how many places it has.
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
    double even = d.ns;
    if (at.contains(d.place)) {
      const Means& share = shares.at({of.stage_of[edges[d.edges - 1].owner], at.size()});
      even = share.at(d.place).mean() * at.at(kEnd).mean();
    }
    const double did = d.ns - before.ns;
    const double times = did > 0 ? std::max(0.0, even - even_before) / did : 1;
    for (std::uint32_t k = before.edges; k < d.edges; ++k) {
      edges[k].as_even = static_cast<float>(times);
    }
    before = {d.edges, d.place, d.place == kEnd ? 0 : d.ns};
    even_before = d.place == kEnd ? 0 : even;
  }
}

}  // namespace tprof::why
