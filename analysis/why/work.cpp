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

Work::Work(const Evidence& e, const graph::Lags& lags, const Edges& of)
    : stage_of_(of.stage_of), stretches_(stretches_of(e, lags, of)), ns_(e.times.ranks.size()) {
  const std::vector<Edge>& edges = of.of(Of::kernels);
  const auto at = [&](const Stretch& s) -> const Edge& { return edges[s.to - 1]; };
  // Only places that all ranks of a stage pass in all steps can be compared.
  std::map<std::size_t, std::size_t> ranks_of_stage;
  for (const std::size_t stage : stage_of_) ++ranks_of_stage[stage];
  std::map<std::pair<std::size_t, CallOf>, std::size_t> pass;
  for (const Stretch& s : stretches_) {
    if (at(s).step != Edge::kNone) ++pass[{stage_of_[at(s).owner], s.place}];
  }
  std::erase_if(pass, [&](const auto& its) {
    return its.second != ranks_of_stage[its.first.first] * of.steps.size();
  });
  const double steps = static_cast<double>(std::max<std::size_t>(of.steps.size(), 1));
  Stretch whole;
  for (const Stretch& s : stretches_) {
    if (whole.to == 0) whole.from = s.from;
    whole.to = s.to;
    whole.ns += s.ns;
    if (!pass.contains({stage_of_[at(s).owner], s.place}) && s.place != kEnd) continue;
    whole.place = s.place;
    compared_.push_back(std::exchange(whole, {}));
    if (at(s).step == Edge::kNone) continue;
    OfRank& its = ns_[at(s).owner];
    its.at[s.place] += compared_.back().ns / steps;
    its.all += compared_.back().ns / steps;
  }
}

// Kernels of a whole host or stage get the same factors, and keep their differences.
void Work::as_others(const Slow& slow, const Edges& of, graph::Lags& lags) const {
  std::map<std::size_t, Places> of_stages;  // slow ranks
  for (const std::size_t r : slow.ranks) of_stages[stage_of_[r]].push_back(r);
  std::vector<std::map<CallOf, double>> times(ns_.size());
  for (const auto& [stage, ranks] : of_stages) {
    Places others;
    for (std::size_t r = 0; r < ns_.size(); ++r) {
      if (!slow.has(r) && stage_of_[r] == stage) others.push_back(r);
    }
    const bool like = !others.empty();
    for (std::size_t r = 0; r < ns_.size() && !like; ++r) {
      if (!slow.has(r)) others.push_back(r);
    }
    const Places all = ranks;
    const auto mean_of = [&](const Places& of_ranks, const auto& ns) {
      double sum = 0;
      for (const std::size_t r : of_ranks) sum += ns(r);
      return sum / static_cast<double>(of_ranks.size());
    };
    const auto median_of_others = [&](const auto& ns) {
      std::vector<double> each;
      for (const std::size_t r : others) each.push_back(ns(r));
      return median(std::move(each));
    };
    const auto total = [&](std::size_t r) { return ns_[r].all; };
    const double usual = median_of_others(total);
    const bool together = slow.named && mean_of(all, total) > usual;
    std::map<CallOf, double> usual_at;
    if (like) {
      for (const auto& [place, ns] : ns_[ranks.front()].at) {
        usual_at[place] = median_of_others([&](std::size_t r) {
          const auto here = ns_[r].at.find(place);
          return here == ns_[r].at.end() ? 0.0 : here->second;
        });
      }
    }
    for (const std::size_t r : ranks) {
      const Places own = together ? all : Places{r};
      const double ns = mean_of(own, total);
      if (ns <= usual) continue;
      double more = 0;
      std::map<CallOf, double> more_at;
      for (const auto& [place, others_ns] : usual_at) {
        const double here = mean_of(own, [&](std::size_t o) {
          const auto at = ns_[o].at.find(place);
          return at == ns_[o].at.end() ? 0.0 : at->second;
        });
        if (here <= others_ns) continue;
        more += here - others_ns;
        more_at[place] = (here - others_ns) / here;
      }
      // Chance makes a rank slower at some places and faster at others: only the net difference
      // counts.
      const double part = more == 0 ? 0 : std::min(1.0, (ns - usual) / more);
      for (const auto& [place, here] : ns_[r].at) {
        times[r][place] = like ? 1 - more_at[place] * part : usual / ns;
      }
    }
  }
  const std::vector<Edge>& edges = of.of(Of::kernels);
  for (const Stretch& s : compared_) {
    const std::map<CallOf, double>& its = times[edges[s.to - 1].owner];
    const auto factor = its.find(s.place);
    if (factor == its.end()) continue;
    for (std::uint32_t k = s.from; k < s.to; ++k) {
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
  struct Done : Stretch {
    double done_ns = 0;  // of its step until then
  };
  std::vector<Done> all;
  double ns = 0;
  for (const Stretch& s : stretches_) {
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
  // The usual share of a step's work done at a place, by stage and number of places. A step with an
  // evaluation has other shares.
  std::map<std::pair<std::size_t, std::size_t>, std::map<CallOf, std::vector<double>>> shares;
  for (auto& [group, at] : means) {
    const auto& [stage, step] = group;
    const std::size_t ranks = ranks_of_stage[stage];
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
  Done before;
  double even_before = 0;
  for (const Done& d : all) {
    const Means& at = means_of(d);
    if (!at.contains(d.place) && d.place != kEnd) continue;
    double even = d.done_ns;
    if (at.contains(d.place)) {
      const auto& share = usual.at({of.stage_of[edges[d.to - 1].owner], at.size()});
      even = share.at(d.place) * at.at(kEnd).mean();
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
