#include "graph/graph.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace tprof::graph {
namespace {

// Returns the index of the first edge into each node when edges are sorted by target, then their
// number.
template <typename Edges>
std::vector<std::uint32_t> firsts_of(const Edges& edges, std::size_t nodes) {
  std::vector<std::uint32_t> first(nodes + 1);
  for (const Edge& e : edges) ++first[e.to + 1];
  for (std::size_t i = 0; i < nodes; ++i) first[i + 1] += first[i];
  return first;
}

// The edges that a change adds to the graph. Most changes add none.
class AddedEdges {
 public:
  AddedEdges(std::vector<Edge> edges, std::size_t nodes) : edges_(std::move(edges)) {
    std::ranges::stable_sort(edges_, {}, &Edge::to);
    if (!edges_.empty()) first_ = firsts_of(edges_, nodes);
  }
  std::span<const Edge> into(Node n) const {
    if (edges_.empty()) return {};
    return std::span(edges_).subspan(first_[n], first_[n + 1] - first_[n]);
  }
  bool empty() const { return edges_.empty(); }

 private:
  std::vector<Edge> edges_;  // by target
  std::vector<std::uint32_t> first_;
};

// Returns the nodes in topological order; fewer, if some are in a cycle.
std::vector<Node> order_of(const Graph& graph, std::span<const Lag> lags_ns,
                           const AddedEdges& more) {
  enum class Seen : std::uint8_t { no, open, yes };
  struct Open {
    Node node;
    std::uint32_t edge;  // the next edge into the node to look at: of the graph, then of `more`
  };
  std::vector<Seen> seen(graph.size());
  std::vector<Node> order;
  order.reserve(graph.size());
  std::vector<Open> open;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Node begin = graph.order.empty() ? static_cast<Node>(i) : graph.order[i];
    if (seen[begin] == Seen::no) open.push_back({begin, 0});
    while (!open.empty()) {
      const auto [node, edge] = open.back();
      seen[node] = Seen::open;
      const std::uint32_t own = graph.first[node + 1] - graph.first[node];
      const std::span<const Edge> others = more.into(node);
      if (edge == own + others.size()) {
        seen[node] = Seen::yes;
        order.push_back(node);
        open.pop_back();
        continue;
      }
      ++open.back().edge;
      const std::uint32_t at = graph.first[node] + edge;
      if (edge < own && lags_ns[at] == kNever) continue;
      const Node from = edge < own ? graph.from[at] : others[edge - own].from;
      if (seen[from] == Seen::open) return order;
      if (seen[from] == Seen::no) open.push_back({from, 0});
    }
  }
  return order;
}

// Sorts the edges by target into the graph.
template <typename Edges>
void put(Graph& graph, const Edges& edges) {
  graph.first = firsts_of(edges, graph.size());
  std::vector<std::uint32_t> place(graph.first.begin(), graph.first.end() - 1);
  graph.from.resize(edges.size());
  graph.lag_ns.resize(edges.size());
  graph.wait.resize(edges.size());
  for (const Edge& e : edges) {
    const std::uint32_t i = place[e.to]++;
    graph.from[i] = e.from;
    graph.lag_ns[i] = e.lag_ns;
    graph.wait[i] = e.wait;
  }
}

// Adds the time that no edge into a node explains to the lags of these edges, except kernels.
void give_rest(Graph& graph, Node to) {
  const std::uint32_t first = graph.first[to];
  const std::uint32_t last = graph.first[to + 1];
  double explained = kNever;
  for (std::uint32_t i = first; i < last; ++i) {
    const auto from = static_cast<double>(graph.at_ns[graph.from[i]]);
    explained = std::max(explained, from + static_cast<double>(graph.lag_ns[i]));
  }
  const double rest = static_cast<double>(graph.at_ns[to]) - explained;
  for (std::uint32_t i = first; i < last; ++i) {
    if (graph.wait[i] != Wait::computes) graph.lag_ns[i] += static_cast<Lag>(std::max(rest, 0.0));
  }
}

class Builder {
 public:
  Builder(const run::Run& run, bool marked) : run_(run), marked_(marked) {}

  Graph build() {
    for (std::uint32_t r = 0; r < run_.ranks.size(); ++r) add_calls(r);
    for (std::uint32_t r = 0; r < run_.ranks.size(); ++r) add_queues(r);
    Needs needs = needs_of(run_, std::exchange(could_come_ns_, {}));
    needs_ns_ = std::move(needs.done_ns);
    without_ns_ = std::move(needs.without_ns);
    graph_.assumed = std::move(needs.assumed);
    for (std::uint32_t r = 0; r < run_.ranks.size(); ++r) {
      add_host_order(r);
      const auto work = static_cast<Node>(graph_.size());
      add_work(r);
      graph_.works.emplace_back(work, static_cast<Node>(graph_.size()));
      add_host(r);
    }
    for (std::size_t m = 0; m < run_.meetings(); ++m) add_meeting(run_.meeting(m));
    finish();
    return std::move(graph_);
  }

 private:
  Node node(std::int64_t at_ns, std::uint32_t rank, Kind kind) {
    graph_.at_ns.push_back(at_ns);
    graph_.rank.push_back(rank);
    graph_.kind.push_back(kind);
    return static_cast<Node>(graph_.size() - 1);
  }
  std::int64_t at(Node n) const { return graph_.at_ns[n]; }
  void in_order(Node to, Node from, Wait why) {
    // Measured times may contradict the order a little. A negative lag then keeps the measured
    // time.
    edges_.push_back(
        {from, to, static_cast<Lag>(std::min<std::int64_t>(0, at(to) - at(from))), why});
  }
  void behind(Node to, Node from, Wait why) {
    edges_.push_back({from, to, static_cast<Lag>(at(to) - at(from)), why});
  }

  void add_calls(std::uint32_t r) {
    const run::Calls& c = run_.ranks[r].calls;
    graph_.rows.push_back(static_cast<Node>(graph_.size()));
    for (std::size_t i = 0; i < c.size(); ++i) {
      node(c.called_ns[i], r, Kind::called);
      node(c.came_ns[i], r, Kind::came);
      in_order(graph_.came(r, i), graph_.called(r, i), Wait::turn);
      node(c.ended_ns[i], r, Kind::ended);
      behind_own(r, i);
    }
  }
  // A copy takes as long as it took, and so do the kernels of a launch; a call of NCCL ends with
  // its meeting.
  void behind_own(std::uint32_t r, std::size_t i) {
    const run::Calls& c = run_.ranks[r].calls;
    if (c.comm[i] == run::Calls::kNoComm) {
      behind(graph_.ended(r, i), graph_.came(r, i), c.is[i].launch ? Wait::computes : Wait::copies);
    } else {
      in_order(graph_.ended(r, i), graph_.came(r, i), Wait::turn);
    }
  }

  // Calls of a stream may seem to overlap a little where an end was measured late.
  static bool overlap(const run::Calls& c, std::size_t before, std::size_t after) {
    const std::int64_t both = c.ended_ns[before] - c.came_ns[after];
    return 2 * both >= c.ended_ns[before] - c.came_ns[before];
  }

  // NCCL runs the collectives of a communicator one after the other, whatever their streams.
  // Messages of one communicator may run concurrently: one waits for another only if it came right
  // after the other's end.
  static bool in_turn(const run::Calls& c, std::size_t before, std::size_t after) {
    const std::int64_t apart = c.came_ns[after] - c.ended_ns[before];
    return apart > -kGrainNs && (!c.is[after].messages || apart < kGrainNs);
  }

  // The calls of a stream, and of a communicator, run one after the other.
  void add_queues(std::uint32_t r) {
    const run::Calls& c = run_.ranks[r].calls;
    std::vector<std::int64_t>& could_come = could_come_ns_.emplace_back(c.size(), INT64_MIN / 2);
    std::map<std::pair<bool, std::uint32_t>, std::size_t> last;
    for (std::size_t i = 0; i < c.size(); ++i) {
      for (const auto& key :
           {std::pair(false, std::uint32_t{c.stream[i]}), std::pair(true, c.comm[i])}) {
        if (key.first && key.second == run::Calls::kNoComm) continue;
        const auto [place, fresh] = last.try_emplace(key, i);
        const std::size_t before = std::exchange(place->second, i);
        if (!fresh && (key.first ? in_turn(c, before, i) : !overlap(c, before, i))) {
          in_order(graph_.came(r, i), graph_.ended(r, before), Wait::turn);
          could_come[i] = std::max(could_come[i], std::min(c.came_ns[i], c.ended_ns[before]));
        }
      }
    }
  }

  // Returns the call that work waited for when it stood still from `from_ns` to `to_ns`: the one
  // that ended nearest to `to_ns`. Work may go on before a group has ended, since it may need an
  // earlier call of the group, but not before all had come. After a copy it goes on at once, unless
  // the host waited for the copy. Work was launched before `row`, the first row that needs it, was
  // called, so it can't wait for what was called later.
  std::optional<std::size_t> barrier(std::uint32_t r, std::int64_t from_ns, std::int64_t to_ns,
                                     const std::size_t* row) {
    const run::Calls& c = run_.ranks[r].calls;
    const std::int64_t launched_ns = row == nullptr ? INT64_MAX : c.called_ns[*row];
    std::optional<std::size_t> best;
    const auto apart = [&](std::size_t i) { return std::abs(c.ended_ns[i] - to_ns); };
    auto i = std::ranges::lower_bound(by_end_, from_ns + 1, {},
                                      [&](std::size_t n) { return c.ended_ns[n]; });
    const auto any_had_come = [&] {
      return i != by_end_.end() &&
             had_come_ns_[static_cast<std::size_t>(i - by_end_.begin())] < to_ns;
    };
    for (; any_had_come() && (!best || c.ended_ns[*i] - to_ns < apart(*best)); ++i) {
      if (c.called_ns[*i] > launched_ns || without_ns_[r][*i] > to_ns + kGrainNs) continue;
      if (c.copies(*i) && (c.ended_ns[*i] < to_ns - kGrainNs || host_waited(r, *i))) continue;
      if (c.ended_ns[*i] > to_ns + kGrainNs && c.made[*i] < 2) continue;
      if (c.all_came_ns[*i] < to_ns && (!best || apart(*i) < apart(*best))) best = *i;
    }
    return best;
  }

  // True if the copy blocked the host.
  bool host_waited(std::uint32_t r, std::size_t copy) const {
    const run::Calls& c = run_.ranks[r].calls;
    const std::vector<run::Blocked>& blocked = run_.ranks[r].blocked;
    const auto next = run::first_ended_after(blocked, c.ended_ns[copy] - 1);
    return next != blocked.end() && next->host.from_ns < c.ended_ns[copy] &&
           next->bytes == c.bytes[copy] && next->to_device == (c.bucket[copy] == Bucket::H2D);
  }

  // True if its host was blocked and went on within this time.
  static bool goes_on_within(const run::Rank& rank, const run::Interval& time) {
    const auto next = run::first_ended_after(rank.blocked, time.from_ns);
    return next != rank.blocked.end() && next->host.to_ns <= time.to_ns;
  }

  // Returns the messages that a rank receives, with when the work was done that its earlier calls
  // need: what it computes after that may need the message. Left out are messages of a kind during
  // which the rank is seen to compute on.
  std::vector<std::pair<std::int64_t, std::size_t>> received(std::uint32_t r) const {
    const run::Rank& rank = run_.ranks[r];
    const run::Calls& c = rank.calls;
    std::vector<std::pair<std::int64_t, std::size_t>> all;
    std::set<std::pair<std::uint32_t, std::string_view>> beside;
    std::int64_t done_ns = kNoWork;
    for (const std::size_t i : run::by_call(c)) {
      done_ns = std::max(done_ns, needs_ns_[r][i]);
      if (!c.is[i].messages || c.name[i] == "ncclSend") continue;
      const std::int64_t ended = c.ended_ns[i];
      const auto work = run::first_after(rank.work, ended);
      const bool computes = work != rank.work.end() && work->from_ns < ended - kGrainNs;
      if (computes && ended > done_ns + kGrainNs) beside.emplace(c.comm[i], c.name[i]);
      all.emplace_back(done_ns, i);
    }
    std::erase_if(all, [&](const auto& of) {
      return of.first == kNoWork || beside.contains({c.comm[of.second], c.name[of.second]}) ||
             c.ended_ns[of.second] > of.first + kGrainNs;
    });
    return all;
  }

  void add_work(std::uint32_t r) {
    const run::Rank& rank = run_.ranks[r];
    const run::Calls& c = rank.calls;
    by_end_.clear();
    for (std::size_t i = 0; i < c.size(); ++i) by_end_.push_back(i);
    std::ranges::sort(by_end_, {}, [&](std::size_t i) { return c.ended_ns[i]; });
    had_come_ns_.assign(c.size(), INT64_MAX);
    for (std::size_t k = c.size(); k-- != 0;) {
      had_come_ns_[k] =
          std::min(c.all_came_ns[by_end_[k]], k + 1 == c.size() ? INT64_MAX : had_come_ns_[k + 1]);
    }
    const std::vector<std::int64_t>& needs = needs_ns_[r];
    by_need_.clear();
    for (std::size_t i = 0; i < c.size(); ++i) {
      if (needs[i] != kNoWork) by_need_.push_back(i);
    }
    std::ranges::stable_sort(by_need_, {}, [&](std::size_t i) { return needs[i]; });
    auto next = by_need_.cbegin();
    const std::int64_t first_ns = c.size() == 0 ? INT64_MAX : c.came_ns[0];
    std::optional<Node> done;
    const auto messages = received(r);
    auto message = messages.begin();
    const auto calls_until = [&](std::int64_t ns) {
      for (; next != by_need_.end() && needs[*next] < ns; ++next) {
        if (!done) continue;
        // If the work stood still for a call, the next call waits for that call's end.
        const auto until = barrier(r, at(*done), needs[*next], &*next);
        const bool behind_call = until && c.ended_ns[*until] < needs[*next] + kGrainNs;
        in_order(graph_.came(r, *next), behind_call ? graph_.ended(r, *until) : *done, Wait::place);
      }
    };
    for (const run::Interval& w : rank.work) {
      calls_until(w.from_ns + 1);
      const Node begin = node(w.from_ns, r, Kind::work);
      const std::size_t* row = next == by_need_.end() ? nullptr : &*next;
      const auto until = barrier(r, done ? at(*done) : first_ns, w.from_ns, row);
      // If the host did something after the barrier, it launched this work only then.
      const std::size_t k = host_until(r, w.from_ns);
      const bool by_host =
          !until || (k != 0 && at(graph_.host[r][k - 1]) > c.ended_ns[*until] + kGrainNs);
      if (until) {
        const Node ended = graph_.ended(r, *until);
        const bool waited = goes_on_within(rank, {at(ended) - kGrainNs, w.from_ns});
        by_host ? in_order(begin, ended, Wait::barrier)
                : behind(begin, ended, waited ? Wait::waited : Wait::barrier);
      }
      if (done) in_order(begin, *done, Wait::turn);
      if (by_host) launched(r, begin, done, row, k);
      done = begin;
      for (; next != by_need_.end() && needs[*next] < w.to_ns; ++next) {
        const Node here = node(needs[*next], r, Kind::work);
        behind(here, *done, Wait::computes);
        done = here;
        in_order(graph_.came(r, *next), here, Wait::place);
        const std::int64_t now = needs[*next];
        if (std::next(next) != by_need_.end() && needs[*std::next(next)] == now) continue;
        for (; message != messages.end() && message->first <= now; ++message) {
          if (message->first != now) continue;
          if (done == here) {
            done = node(now, r, Kind::work);
            in_order(*done, here, Wait::turn);
          }
          in_order(*done, graph_.ended(r, message->second), Wait::barrier);
        }
      }
      const Node end = node(w.to_ns, r, Kind::work);
      behind(end, *done, Wait::computes);
      done = end;
    }
    calls_until(INT64_MAX);
  }

  // Returns how many nodes of its host happened by then.
  std::size_t host_until(std::uint32_t r, std::int64_t ns) const {
    const std::vector<Node>& host = graph_.host[r];
    const auto next = std::ranges::upper_bound(host, ns, {}, [&](Node n) { return at(n); });
    return static_cast<std::size_t>(next - host.begin());
  }

  // The host launched the work that begins here. Since its last node it either needed its own time,
  // or waited until the device was idle.
  //
  // `row`: the first row that needs this work. If the host had already called that row when the
  // device fell idle, it had launched the work between that call and the one before. `k`: how many
  // nodes of the host had happened.
  void launched(std::uint32_t r, Node begin, std::optional<Node> done, const std::size_t* row,
                std::size_t k) {
    const std::vector<Node>& host = graph_.host[r];
    const run::Calls& c = run_.ranks[r].calls;
    if (done && row != nullptr && c.called_ns[*row] <= at(*done)) {
      const auto here =
          std::ranges::lower_bound(host, c.called_ns[*row], {}, [&](Node n) { return at(n); });
      if (here != host.begin()) in_order(begin, *std::prev(here), Wait::launch);
      return;
    }
    const bool went_on = done && k != 0 && at(host[k - 1]) > at(*done);
    const bool waited = !went_on && k != host.size() && graph_.waited_ns[r][k] > 0;
    if (done && (waited || k == 0)) return behind(begin, *done, Wait::waited);
    if (k != 0) behind(begin, host[k - 1], Wait::launch);
  }

  // Without marks a step begins when the device has finished everything before its first call, and
  // the host has called all of that.
  static std::int64_t begins_ns(const std::vector<std::int64_t>& called, const run::Intervals& busy,
                                std::int64_t first_ns) {
    const auto next = run::first_after(busy, first_ns);
    if (next == busy.begin() || (next != busy.end() && next->from_ns < first_ns)) return first_ns;
    const auto call = std::ranges::lower_bound(called, first_ns);
    const std::int64_t done = std::prev(next)->to_ns;
    return call == called.begin() ? done : std::max(done, *std::prev(call) + 1);
  }

  // A host waits for its device in launches to a full queue, and in blocking copies.
  void add_host_order(std::uint32_t r) {
    const run::Rank& rank = run_.ranks[r];
    std::vector<Node>& host = graph_.host.emplace_back();
    // After the last call nothing tells how long the host waited.
    std::vector<std::int64_t> called = rank.calls.called_ns;
    std::ranges::sort(called);
    const std::int64_t last = called.empty() ? INT64_MIN : called.back();
    const run::Intervals busy = run::busy_of(rank, true);
    for (const run::Step& step : rank.steps) {
      for (std::int64_t ns : {step.from_ns, step.to_ns}) {
        if (!marked_) ns = begins_ns(called, busy, ns);
        const bool known = !host.empty() && at(host.back()) >= ns;
        if (!known && ns <= last) host.push_back(node(ns, r, Kind::mark));
      }
    }
    for (std::size_t i = 0; i < rank.calls.size(); ++i) host.push_back(graph_.called(r, i));
    std::ranges::stable_sort(host, {}, [&](Node n) { return at(n); });
    std::map<Node, std::int64_t> waits;  // of launches
    for (std::size_t i = 0; i < rank.calls.size(); ++i) {
      if (rank.calls.waited_ns[i] != 0) waits[graph_.called(r, i)] = rank.calls.waited_ns[i];
    }
    std::vector<std::int64_t>& waited = graph_.waited_ns.emplace_back(host.size());
    for (std::size_t k = 0; k < host.size(); ++k) {
      const auto its = waits.find(host[k]);
      if (its == waits.end()) continue;
      std::int64_t rest = its->second;
      std::size_t here = k;
      // After a mark the host waited at most as long as its device was busy; the rest was before
      // the mark.
      for (; here != 0 && graph_.kind[host[here - 1]] == Kind::mark; --here) {
        const std::int64_t ns =
            std::min(rest, run::covered(busy, {at(host[here - 1]), at(host[here])}));
        waited[here] += ns;
        rest -= ns;
      }
      waited[here] += rest;
    }
    for (const run::Blocked& b : rank.blocked) {
      const std::size_t next = goes_on(graph_, r, b);
      if (next < host.size()) waited[next] += b.host.to_ns - b.host.from_ns;
    }
  }

  void add_host(std::uint32_t r) {
    const std::vector<Node>& host = graph_.host[r];
    std::vector<Node> device(graph_.work(r).begin(), graph_.work(r).end());
    for (std::size_t i = 0; i < run_.ranks[r].calls.size(); ++i) {
      device.push_back(graph_.ended(r, i));
    }
    std::ranges::sort(device, {}, [&](Node n) { return at(n); });
    for (std::size_t k = 1; k < host.size(); ++k) {
      const std::int64_t waited = graph_.waited_ns[r][k];
      const std::int64_t needs = std::max<std::int64_t>(0, at(host[k]) - at(host[k - 1]) - waited);
      edges_.push_back({host[k - 1], host[k], static_cast<Lag>(needs), Wait::host});
      if (waited == 0) continue;
      // It went on when something that was there before had ended. That end may be rounded up.
      auto last = std::ranges::lower_bound(device, at(host[k]) + run::Blocked::kRoundedNs, {},
                                           [&](Node n) { return at(n); });
      const auto was_there = [&](Node n) {
        const Node begun = graph_.kind[n] == Kind::ended ? n - 2 : n;  // the call's node `called`
        return at(begun) < at(host[k]);
      };
      while (last != device.begin() && !was_there(*std::prev(last))) --last;
      if (last != device.begin()) behind(host[k], *std::prev(last), Wait::waited);
    }
  }

  // One node stands for all ranks that have come so far, so that many ranks need few edges.
  void add_meeting(std::span<const run::Row> rows) {
    std::map<std::size_t, Node> met;  // by how many came
    run::each_of_meeting(run_, rows, came_, [&](const run::Row&, std::size_t n) {
      if (n != 0) met.try_emplace(n);
    });
    std::size_t from = 0;
    std::optional<Node> before;
    for (auto& [n, here] : met) {
      here =
          node(at(graph_.came(came_[n - 1].rank, came_[n - 1].row)), came_[n - 1].rank, Kind::met);
      if (before) in_order(here, *before, Wait::turn);
      for (; from < n; ++from) {
        in_order(here, graph_.came(came_[from].rank, came_[from].row), Wait::turn);
      }
      before = here;
    }
    run::each_of_meeting(run_, rows, came_, [&](const run::Row& mine, std::size_t n) {
      if (n != 0) in_order(graph_.ended(mine.rank, mine.row), met.at(n), Wait::meeting);
    });
  }

  // Adds the unexplained time before each node to its lags.
  void finish() {
    put(graph_, edges_);
    edges_ = {};
    graph_.at_ns.shrink_to_fit();
    graph_.rank.shrink_to_fit();
    graph_.kind.shrink_to_fit();
    graph_.order = order_of(graph_, graph_.lag_ns, AddedEdges({}, graph_.size()));
    for (Node to = 0; to < graph_.size(); ++to) give_rest(graph_, to);
  }

  const run::Run& run_;
  bool marked_;
  Graph graph_;
  std::deque<Edge> edges_;  // a deque, since a growing vector would need twice the memory
  std::vector<std::size_t> by_end_;
  std::vector<std::int64_t>
      had_come_ns_;             // by place in by_end_: the earliest of all_came_ns from it on
  std::vector<run::Row> came_;  // rows of a meeting, in order of arrival
  std::vector<std::vector<std::int64_t>>
      could_come_ns_;                                  // by rank and row: when its queues were free
  std::vector<std::vector<std::int64_t>> needs_ns_;    // by rank and row: Needs::done_ns
  std::vector<std::vector<std::int64_t>> without_ns_;  // likewise: Needs::without_ns
  std::vector<std::size_t> by_need_;                   // the rows that need work
};

}  // namespace

std::size_t goes_on(const Graph& graph, std::size_t rank, const run::Blocked& copy) {
  const std::vector<Node>& host = graph.host[rank];
  const auto at = [&](Node n) { return graph.at_ns[n]; };
  const auto next = std::ranges::lower_bound(host, copy.goes_on_ns(), {}, at);
  auto k = static_cast<std::size_t>(next - host.begin());
  // A blocked thread marks no step, whatever the times say.
  while (k != 0 && graph.kind[host[k - 1]] == Kind::mark && at(host[k - 1]) > copy.host.from_ns) {
    --k;
  }
  return k;
}

Graph graph_of(const run::Run& run, bool marked) {
  return Builder(run, marked).build();
}

std::vector<double> replay(const Graph& graph, std::span<const Lag> lags_ns,
                           std::vector<Edge> edges, std::vector<double> at) {
  const AddedEdges more(std::move(edges), graph.size());
  const std::vector<Node> changed =
      more.empty() ? std::vector<Node>() : order_of(graph, lags_ns, more);
  if (!more.empty() && changed.size() != graph.size()) return {};
  at.assign(graph.at_ns.begin(), graph.at_ns.end());
  for (const Node n : more.empty() ? graph.order : changed) {
    constexpr double kNoTime = std::numeric_limits<double>::lowest();
    double latest = kNoTime;
    for (std::uint32_t i = graph.first[n]; i < graph.first[n + 1]; ++i) {
      if (lags_ns[i] == kNever) continue;
      latest = std::max(latest, at[graph.from[i]] + static_cast<double>(lags_ns[i]));
    }
    for (const Edge& e : more.into(n)) {
      latest = std::max(latest, at[e.from] + static_cast<double>(e.lag_ns));
    }
    if (latest != kNoTime) at[n] = latest;
  }
  return at;
}

}  // namespace tprof::graph
