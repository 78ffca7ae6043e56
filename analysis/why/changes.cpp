#include "why/changes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "interpose/format/ledger.h"
#include "why/numbers.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

using graph::kNever;
using graph::Lag;
using graph::Node;
using graph::Wait;

double overlap(double from, double to, const run::Interval& with) {
  return std::max(0.0, std::min(to, static_cast<double>(with.to_ns)) -
                           std::max(from, static_cast<double>(with.from_ns)));
}

}  // namespace

Saving saving_of(const graph::Model& model, const graph::StepsNs& before,
                 const graph::StepsNs& behind, const std::set<std::int64_t>& in) {
  std::vector<double> saved;
  double ns = 0;
  for (const auto& [step, takes] : before) {
    ns += takes - behind.at(step);
    if (in.empty() || in.contains(step)) saved.push_back(takes - behind.at(step));
  }
  const auto all = static_cast<double>(std::max(before.size(), std::size_t{1}));
  const double error =
      std::abs(graph::mean_of(model.replayed_ns()) - graph::mean_of(model.measured_ns()));
  return {ns / all, 2 * mean_error(saved) * static_cast<double>(saved.size()) / all + error};
}

Changes::Changes(const Evidence& e)
    : model_(*e.model), g_(model_.graph()), lags_(e.replays->lags()), before_(e.replays->steps()) {}

template <typename F>
void Changes::each_edge(Node into, F&& f) {
  for (std::uint32_t i = g_.first[into]; i < g_.first[into + 1]; ++i) f(g_.wait[i], lags_[i]);
}

void Changes::find_out() {
  for (Node to = 0; to < g_.size(); ++to) {
    for (std::uint32_t i = g_.first[to]; i < g_.first[to + 1]; ++i) {
      const Wait wait = g_.wait[i];
      const bool behind_call = wait == Wait::turn && g_.kind[to] == graph::Kind::came;
      if (wait == Wait::barrier || wait == Wait::launch || behind_call) out_.push_back(i);
    }
  }
  std::ranges::stable_sort(out_, {}, [&](auto edge) { return g_.from[edge]; });
}

void Changes::leave_out(std::size_t rank, std::size_t row, bool host) {
  if (out_.empty()) find_out();
  const Node ended = g_.ended(rank, row);
  const Node called = g_.called(rank, row);
  each_edge(ended, [](Wait wait, Lag& lag) {
    lag = wait == Wait::meeting ? kNever : std::min(lag, Lag{0});
  });
  come_early(rank, row);
  needs_nothing(rank, row);
  for (const std::uint32_t edge : out_of(ended)) {
    const Node to = g_.into(edge);
    if (g_.wait[edge] == Wait::barrier) {
      // The host still needs its time between the call's end and the work.
      const Lag rest = std::exchange(lags_[edge], kNever);
      each_edge(to, [&](Wait wait, Lag& lag) {
        if (wait == Wait::turn) lag = std::max(lag, rest);
      });
    }
    if (g_.wait[edge] != Wait::turn) continue;
    // The next call in its queue may need everything computed by then.
    const auto work = g_.work(rank);
    const auto then =
        std::ranges::upper_bound(work, g_.at_ns[to], {}, [&](Node n) { return g_.at_ns[n]; });
    if (then != work.begin()) more_.push_back({*(then - 1), to, 0, Wait::place});
  }
  if (!host) return;
  for (const std::uint32_t edge : out_of(called)) {
    if (g_.wait[edge] == Wait::launch) lags_[edge] = 0;
  }
  each_edge(called, [](Wait wait, Lag& lag) {
    if (wait == Wait::host) lag = 0;
    if (wait == Wait::waited) lag = kNever;
  });
}

void Changes::scale(std::size_t rank, std::size_t row, double times) {
  each_edge(g_.ended(rank, row), [&](Wait, Lag& lag) {
    if (lag > 0) lag *= static_cast<Lag>(times);
  });
}

void Changes::scale(const std::string& comm, Bucket bucket, std::int64_t size_class, double times) {
  for (std::size_t r = 0; r < model_.run().ranks.size(); ++r) {
    const run::Rank& rank = model_.run().ranks[r];
    const run::Calls& c = rank.calls;
    for (std::size_t i = 0; i < c.size(); ++i) {
      if (c.comm[i] == run::Calls::kNoComm || c.bucket[i] != bucket || c.made[i] == 0) continue;
      const read::Comm* its = read::comm_of(*rank.process, c.comm[i]);
      const std::int64_t size = bytes_class(c.bytes[i] / c.made[i]);
      if (its != nullptr && its->id == comm && size == size_class) scale(r, i, times);
    }
  }
}

bool Changes::come_early(std::size_t rank, std::size_t row) {
  const Node came = g_.came(rank, row);
  bool waits = false;
  each_edge(came, [&](Wait wait, Lag& lag) {
    if (wait != Wait::place) return;
    lag = kNever;
    waits = true;
  });
  return waits && !model_.run().ranks[rank].calls.is[row].at_once;
}

void Changes::unblock(std::size_t rank, const run::Blocked& copy) {
  // Calls and work after the copy went on when it had ended.
  const auto at = [&](Node n) { return static_cast<double>(g_.at_ns[n]); };
  const auto goes_on = [&](Node n) {
    for (std::uint32_t i = g_.first[n]; i < g_.first[n + 1]; ++i) {
      const bool waits = g_.wait[i] == Wait::waited;
      if (waits && g_.kind[n] == graph::Kind::work) lags_[i] = std::min(lags_[i], Lag{0});
      if (g_.wait[i] == Wait::barrier || g_.wait[i] == Wait::launch) {
        const auto both = static_cast<Lag>(overlap(at(g_.from[i]), at(n), copy.host));
        lags_[i] -= std::min(std::max(lags_[i], Lag{0}), both);
      }
    }
  };
  const std::size_t next = graph::goes_on(g_, rank, copy);
  if (next < g_.host[rank].size()) {
    // The host may also have waited for something else.
    const Node host = g_.host[rank][next];
    const std::int64_t all = g_.waited_ns[rank][next];
    std::int64_t& waited = waited_ns_.try_emplace(host, all).first->second;
    waited -= copy.host.to_ns - copy.host.from_ns;
    if (waited < graph::kGrainNs) {
      each_edge(host, [](Wait wait, Lag& lag) {
        if (wait == Wait::waited) lag = kNever;
      });
    }
  }
  // Ends of work are known to a grain: work may seem to begin a moment before the host went on.
  const auto work = g_.work(rank);
  auto begin = std::ranges::lower_bound(work, copy.goes_on_ns() - graph::kGrainNs, {},
                                        [&](Node n) { return g_.at_ns[n]; });
  const auto begins = [&](Node n) {
    return std::none_of(g_.wait.begin() + g_.first[n], g_.wait.begin() + g_.first[n + 1],
                        [](Wait wait) { return wait == Wait::computes; });
  };
  while (begin != work.end() && !begins(*begin)) ++begin;
  if (begin != work.end()) goes_on(*begin);
  // If another copy blocks before the work begins, the work waits for that one.
  const std::vector<run::Blocked>& blocked = model_.run().ranks[rank].blocked;
  const auto again = run::first_ended_after(blocked, copy.host.to_ns);
  const bool blocked_again =
      again != blocked.end() && begin != work.end() && again->host.from_ns < g_.at_ns[*begin];
  // If the copy was timed on the device, it takes no time there either.
  const run::Calls& c = model_.run().ranks[rank].calls;
  for (const std::size_t row :
       std::ranges::equal_range(model_.by_call(rank), copy.host.from_ns, {},
                                [&](std::size_t i) { return c.called_ns[i]; })) {
    if (!c.copies(row)) continue;
    each_edge(g_.ended(rank, row), [](Wait, Lag& lag) { lag = std::min(lag, Lag{0}); });
    if (begin == work.end() || blocked_again) continue;
    const auto launch = static_cast<Lag>(g_.at_ns[*begin] - copy.host.to_ns);
    more_.push_back({g_.called(rank, row), *begin, std::max(launch, Lag{0}), Wait::launch});
  }
}

void Changes::reorder(std::size_t rank, Rows rows) {
  std::map<Node, std::size_t> place;  // by the call's end node
  for (std::size_t i = 0; i < rows.size(); ++i) place[g_.ended(rank, rows[i])] = i;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Node came = g_.came(rank, rows[i]);
    for (std::uint32_t k = g_.first[came]; k < g_.first[came + 1]; ++k) {
      const auto other = place.find(g_.from[k]);
      if (other != place.end() && other->second > i) lags_[k] = kNever;
    }
    if (i != 0) more_.push_back({g_.ended(rank, rows[i - 1]), came, 0, Wait::turn});
  }
}

Saving Changes::saving() const {
  std::vector<graph::Edge> more = more_;
  std::erase_if(
      more, [&](const graph::Edge& e) { return e.wait == Wait::place && free_.contains(e.to); });
  const graph::StepsNs behind = model_.replayed_ns(lags_, std::move(more));
  return behind.empty() ? Saving() : saving_of(model_, before_, behind);
}

void each_step(const graph::Model& model, const std::function<void(std::size_t, Rows)>& f) {
  for (std::size_t r = 0; r < model.run().ranks.size(); ++r) {
    const Rows rows = model.by_call(r);
    const auto step = [&](std::size_t row) {
      return model.position(model.graph().called(r, row)).step;
    };
    for (std::size_t from = 0; from < rows.size();) {
      std::size_t to = from + 1;
      while (to < rows.size() && step(rows[to]) == step(rows[from])) ++to;
      if (step(rows[from]) != graph::Position::kNoStep) f(r, rows.subspan(from, to - from));
      from = to;
    }
  }
}

}  // namespace tprof::why
