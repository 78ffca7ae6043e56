#include "why/edges.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "interpose/format/ledger.h"
#include "why/numbers.h"
#include "why/stages.h"

namespace tprof::why {
namespace {

using graph::Node;
using graph::Wait;

// Returns by how much each rank's need exceeds the quantile of its group in each step.
std::vector<Series> beyond_others(std::vector<Series> needs, const Places& group_of, double share) {
  std::map<std::size_t, Places> groups;
  for (std::size_t r = 0; r < needs.size(); ++r) groups[group_of[r]].push_back(r);
  for (const auto& [group, ranks] : groups) {
    for (std::size_t i = 0; i < needs[ranks.front()].size(); ++i) {
      std::vector<double> here;
      for (const std::size_t r : ranks) here.push_back(needs[r][i]);
      const double usual = quantile(std::move(here), share);
      for (const std::size_t r : ranks) needs[r][i] -= usual;
    }
  }
  return needs;
}

// The next thing that a host does is a call (graph::Position), or a copy on the way to it. Copies
// are numbered by bucket and place among the copies there.
struct Next {
  std::uint32_t call = 0;
  std::uint32_t copy = 0;  // 0: the call itself
  auto operator<=>(const Next&) const = default;
};

// An edge on which the host spends time, or waits for a copy.
struct HostEdge : Edge {
  Next next{};
  std::uint32_t next_step = kNone;
  Wait wait{};
};

class Finder {
 public:
  Finder(const Evidence& e, Edges& to)
      : e_(e), model_(*e.model), g_(model_.graph()), rank_of_(ranks_of_run(e)), to_(to) {}

  void find() {
    find_next();
    find_edges();
    sort_kernels();
    find_needs(Of::kernels);
    find_needs(Of::host);
    find_usual_hosts();
    find_usual_copies();
    for (const HostEdge& at : hosts_)
      of(at.wait == Wait::copies ? Of::copies : Of::host).push_back(at);
    find_transfers(e_, to_);
  }

 private:
  std::vector<Edge>& of(Of what) { return to_.edges[Edges::index(what)]; }
  Needs& needs_of(Of what) { return to_.needs[Edges::index(what)]; }
  std::uint32_t place(std::int64_t step) const { return to_.place(e_, step); }
  double lag(const Edge& at) const { return static_cast<double>(g_.lag_ns[at.edge]); }
  std::vector<Series> nothing(std::size_t owners) const {
    return std::vector<Series>(owners, Series(to_.steps.size()));
  }

  void find_edges() {
    of(Of::kernels).reserve(static_cast<std::size_t>(std::ranges::count(g_.wait, Wait::computes)));
    for (Node n = 0; n < g_.size(); ++n) {
      const std::size_t rank = rank_of_[g_.rank[n]];
      const graph::Position& at = model_.position(n);
      if (rank == SIZE_MAX || at.step == graph::Position::kNoStep) continue;
      for (std::uint32_t i = g_.first[n]; i < g_.first[n + 1]; ++i) {
        const Edge edge{i, static_cast<std::uint32_t>(rank), place(at.step)};
        switch (g_.wait[i]) {
          case Wait::computes:
            of(Of::kernels).push_back(edge);
            continue;
          case Wait::barrier:
            if (is_ahead(g_.rank[n], g_.at_ns[g_.from[i]], g_.at_ns[n])) continue;
            break;
          case Wait::host:
          case Wait::launch:
          case Wait::copies:
          case Wait::waited:  // after the wait, the host's time
            break;
          default:
            continue;
        }
        const auto [next, step] = next_after(g_.rank[n], g_.at_ns[g_.from[i]]);
        hosts_.push_back({edge, next, step, g_.wait[i]});
        hosts_.back().as_ideal = blocked(g_.rank[n], i);
        hosts_.back().from_step = place(model_.step_at(g_.rank[n], g_.at_ns[g_.from[i]]));
      }
    }
  }

  // By rank and time: the kernels of a CUDA graph's launch are not among the work's nodes.
  void sort_kernels() {
    std::vector<Edge>& kernels = of(Of::kernels);
    const auto launch = [&](const Edge& at) {
      return g_.kind[g_.into(at.edge)] != graph::Kind::work;
    };
    if (kernels.empty() || !launch(kernels.front())) return;  // launches come first
    std::ranges::stable_sort(kernels, {}, [&](const Edge& at) {
      const Node node = g_.into(at.edge);
      return std::pair(g_.rank[node], g_.at_ns[node]);
    });
  }

  // Returns for how much of an edge's time a copy blocked its host. The edges of the host's own
  // time leave such waits out.
  float blocked(std::size_t rank, std::uint32_t edge) const {
    if (g_.wait[edge] == Wait::host) return 0;
    const std::int64_t from_ns = g_.at_ns[g_.from[edge]];
    const std::int64_t to_ns = g_.at_ns[g_.into(edge)];
    std::int64_t ns = 0;
    const std::vector<run::Blocked>& all = model_.run().ranks[rank].blocked;
    for (auto b = run::first_ended_after(all, from_ns); b != all.end() && b->host.from_ns < to_ns;
         ++b) {
      ns += std::min(b->host.to_ns, to_ns) - std::max(b->host.from_ns, from_ns);
    }
    return static_cast<float>(ns) / static_cast<float>(std::max<std::int64_t>(to_ns - from_ns, 1));
  }

  // Hosts are compared from copy to copy where all ranks of a stage usually make the same copies on
  // the way to a call, and else from call to call.
  void find_next() {
    std::map<std::pair<std::size_t, Next>, std::size_t> made;  // by rank
    next_.resize(g_.host.size());
    for (std::size_t r = 0; r < g_.host.size(); ++r) {
      if (rank_of_[r] == SIZE_MAX) continue;
      const run::Calls& c = model_.run().ranks[r].calls;
      graph::Position before;
      std::map<Bucket, std::uint32_t> nth;
      for (const Node n : g_.host[r]) {
        const graph::Position at = model_.position(n);
        Next& next = next_[r].emplace_back(Next{.call = at.call});
        if (at.step == graph::Position::kNoStep) continue;
        if (at.step != before.step || at.call != before.call) {
          ++made[{r, next}];
          nth.clear();
        }
        before = at;
        if (g_.kind[n] != graph::Kind::called || !c.copies(g_.row(n))) continue;
        const Bucket bucket = c.bucket[g_.row(n)];
        next.copy = 1 + static_cast<std::uint32_t>(bucket) +
                    static_cast<std::uint32_t>(kBucketCount) * nth[bucket]++;
        ++made[{r, next}];
      }
    }
    const auto stage = [&](std::size_t r) { return to_.stage_of[rank_of_[r]]; };
    std::map<std::pair<std::size_t, Next>, std::size_t> ranks;  // of a stage, that usually make it
    for (const auto& [of, times] : made) {
      const auto& [r, next] = of;
      if (2 * times > made.at({r, {.call = next.call}})) ++ranks[{stage(r), next}];
    }
    for (std::size_t r = 0; r < next_.size(); ++r) {
      for (std::size_t k = next_[r].size(); k-- != 0;) {
        Next& next = next_[r][k];
        if (next.copy == 0 || ranks[{stage(r), next}] == ranks[{stage(r), {.call = next.call}}])
          continue;
        const bool more = k + 1 != next_[r].size() && next_[r][k + 1].call == next.call;
        next.copy = more ? next_[r][k + 1].copy : 0;
      }
    }
  }

  // Returns what the host did next after `ns`, and in which step.
  std::pair<Next, std::uint32_t> next_after(std::size_t rank, std::int64_t ns) const {
    const std::vector<Node>& host = g_.host[rank];
    const auto next = std::ranges::upper_bound(host, ns, {}, [&](Node n) { return g_.at_ns[n]; });
    if (next == host.end()) return {{}, Edge::kNone};
    return {next_[rank][static_cast<std::size_t>(next - host.begin())],
            place(model_.position(*next).step)};
  }

  // True if at `from_ns` the host had already called the next call to reach the device after
  // `to_ns`: the device did not wait for the host in between.
  bool is_ahead(std::size_t rank, std::int64_t from_ns, std::int64_t to_ns) const {
    const run::Calls& c = model_.run().ranks[rank].calls;
    const auto next = std::ranges::upper_bound(c.came_ns, to_ns) - c.came_ns.begin();
    return next < std::ssize(c.came_ns) && c.called_ns[static_cast<std::size_t>(next)] <= from_ns;
  }

  void find_needs(Of what) {
    Needs& needs = needs_of(what);
    needs.all = nothing(e_.times.ranks.size());
    const auto add = [&](const Edge& at) {
      if (at.step != Edge::kNone) needs.all[at.owner][at.step] += lag(at);
    };
    std::ranges::for_each(of(what), add);
    for (const HostEdge& at : hosts_) {
      if (what == Of::host && at.wait == Wait::host) add(at);
    }
    // Hosts are compared within their stage.
    needs.beyond = beyond_others(needs.all, to_.role_of, 0.5);
    for (Series& its : needs.beyond) {
      const double usual = quantile(its, run::kUsual);
      for (double& ns : its) ns -= usual;
    }
    const Places& group_of = what == Of::host ? to_.stage_of : to_.role_of;
    needs.more = beyond_others(needs.all, group_of, run::kUsual);
    needs.more_than_middle = beyond_others(needs.all, group_of, 0.5);
  }

  // From one thing that a host does in a step to the next, a usual host needs the median of its
  // stage, or its own median over its steps.
  void find_usual_hosts() {
    using Call = std::pair<std::uint32_t, Next>;  // a rank, and what it did
    constexpr double kNotMade = -1;
    std::map<Call, Series> needs;
    for (const HostEdge& at : hosts_) {
      if (at.wait != Wait::host || at.next_step == Edge::kNone) continue;
      const auto [its, fresh] = needs.try_emplace({at.owner, at.next});
      if (fresh) its->second.assign(to_.steps.size(), kNotMade);
      // Copies that not all make belong to the way to what comes next.
      double& ns = its->second[at.next_step];
      ns = std::max(ns, 0.0) + lag(at);
    }
    struct Usual {
      double mean = 0;
      std::optional<double> median{};
    };
    std::map<Call, Usual> usual;
    std::map<std::pair<std::size_t, Next>, std::vector<double>> of_stage;
    for (const auto& [call, each_step] : needs) {
      std::vector<double> each = each_step;
      std::erase(each, kNotMade);
      Usual& its = usual[call];
      its.mean = mean(each);
      // A call that the usual step does not make has no median of its own: the others' is used.
      if (2 * each.size() >= each_step.size()) its.median = median(std::move(each));
      of_stage[{to_.stage_of[call.first], call.second}].push_back(its.mean);
    }
    std::map<std::pair<std::size_t, Next>, double> of_others;
    for (auto& [call, each] : of_stage) of_others[call] = median(std::move(each));
    const auto others = [&](const Call& call) {
      return of_others.at({to_.stage_of[call.first], call.second});
    };
    const auto more_than_others = [&](const Call& call, const Usual& its) {
      return its.mean - others(call);
    };
    // Chance makes a rank faster at some calls and slower at others, so only the net difference
    // counts.
    std::vector<double> net(e_.times.ranks.size());
    std::vector<double> more(net.size());
    for (const auto& [call, its] : usual) {
      net[call.first] += more_than_others(call, its);
      more[call.first] += std::max(0.0, more_than_others(call, its));
    }
    for (HostEdge& at : hosts_) {
      const auto its = usual.find({at.owner, at.next});
      if (its == usual.end() || its->second.mean <= 0) continue;
      const double ns = std::max(0.0, more_than_others(its->first, its->second));
      const double part = more[at.owner] <= 0 ? 0 : std::max(0.0, net[at.owner] / more[at.owner]);
      at.as_others = static_cast<float>(1 - ns / its->second.mean * part);
      if (at.next_step == Edge::kNone) continue;
      const double here = needs.at(its->first)[at.next_step];
      const double own = its->second.median.value_or(others(its->first));
      if (here > 0) at.as_usual = static_cast<float>(std::min(1.0, own / here));
    }
  }

  // A byte of the same direction and size class takes the median of the ranks that make such
  // copies.
  void find_usual_copies() {
    struct Took {
      double ns = 0;
      double bytes = 0;
    };
    using Size = std::pair<Bucket, std::int64_t>;  // of a copy, with floor(log2(bytes))
    std::map<Size, std::map<std::uint32_t, Took>> of_ranks;
    std::vector<std::pair<HostEdge*, Size>> all;
    for (HostEdge& at : hosts_) {
      if (at.wait != Wait::copies) continue;
      const Node node = g_.into(at.edge);
      const run::Calls& c = model_.run().ranks[g_.rank[node]].calls;
      const std::size_t row = g_.row(node);
      const Size size{c.bucket[row], bytes_class(c.bytes[row])};
      Took& took = of_ranks[size][at.owner];
      took.ns += lag(at);
      took.bytes += static_cast<double>(c.bytes[row]);
      all.emplace_back(&at, size);
    }
    std::map<Size, double> usual;
    for (const auto& [size, ranks] : of_ranks) {
      std::vector<double> each;
      for (const auto& [rank, took] : ranks) each.push_back(took.ns / took.bytes);
      usual[size] = median(std::move(each));
    }
    Needs& needs = needs_of(Of::copies);
    needs.more = nothing(e_.times.ranks.size());
    for (const auto& [at, size] : all) {
      const Took& took = of_ranks[size][at->owner];
      const double times = took.ns <= 0 ? 1 : usual[size] * took.bytes / took.ns;
      at->as_others = static_cast<float>(std::min(times, 1.0));
      if (at->step != Edge::kNone) needs.more[at->owner][at->step] += lag(*at) * (1 - times);
    }
    needs.more_than_middle = needs.more;
  }

  const Evidence& e_;
  const graph::Model& model_;
  const graph::Graph& g_;
  const Places rank_of_;                   // index into Times::ranks, by rank of the run
  std::vector<std::vector<Next>> next_{};  // as Graph::host
  std::vector<HostEdge> hosts_{};
  Edges& to_;
};

}  // namespace

std::uint32_t Edges::place(const Evidence& e, std::int64_t step) const {
  const auto number = [&](std::size_t place) { return e.times.steps[e.steps[place]]; };
  const auto at = std::ranges::lower_bound(steps, step, {}, number);
  return at == steps.end() || number(*at) != step ? Edge::kNone
                                                  : static_cast<std::uint32_t>(at - steps.begin());
}

Edges edges_of(const Evidence& e) {
  Edges all{.stages = stages_of(e), .role_of = roles_of(e)};
  for (const std::size_t role : all.role_of) all.stage_of.push_back(all.stages.size() + role);
  for (std::size_t s = 0; s < all.stages.size(); ++s) {
    for (const std::size_t r : all.stages[s]) all.stage_of[r] = s;
  }
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    if (e.model->replayed_ns().contains(e.times.steps[e.steps[i]])) all.steps.push_back(i);
  }
  Finder(e, all).find();
  return all;
}

}  // namespace tprof::why
