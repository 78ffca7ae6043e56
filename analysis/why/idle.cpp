#include "why/idle.h"

#include <algorithm>
#include <functional>

#include "why/numbers.h"

namespace tprof::why {
namespace {

using run::Calls;
using run::Interval;

// "6th ncclAllGather": the number of a call among those of its name in the step. If several were
// timed together: the first, or the last if `last`.
text::Kept which_of(const Calls& c, std::span<const std::size_t> step, std::size_t row, bool last) {
  std::uint64_t nth = last ? c.made[row] : 1;
  std::uint64_t all = 0;
  for (const std::size_t i : step) {
    if (c.name[i] != c.name[row]) continue;
    if (i == row) nth += all;
    all += c.made[i];
  }
  const std::string which = nth == 1 ? "first" : nth == all ? "last" : ordinal(nth);
  return all == 1 ? c.name[row] : text::Kept(which + " " + c.name[row].str());
}

// A step of a rank's host.
struct OfHost {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::vector<std::size_t> calls{};   // rows, by when they were called
  std::vector<std::int64_t> loads{};  // when batches were copied to the device

  OfHost(const run::Rank& rank, const run::Step& in, std::span<const std::size_t> by_call)
      : from_ns(in.from_ns), to_ns(in.to_ns) {
    const auto called = [&](std::size_t i) { return rank.calls.called_ns[i]; };
    const auto first = std::ranges::lower_bound(by_call, from_ns, {}, called);
    std::copy_if(first, std::ranges::lower_bound(by_call, to_ns, {}, called),
                 std::back_inserter(calls), [&](std::size_t i) { return !rank.calls.copies(i); });
    // FSDP copies a few sizes after each all-gather: far smaller copies are no batches.
    std::uint64_t most = 0;
    auto load = std::ranges::lower_bound(rank.loads, from_ns, {}, &run::Copy::called_ns);
    for (auto l = load; l != rank.loads.end() && l->called_ns < to_ns; ++l) {
      most = std::max(most, l->bytes);
    }
    for (; load != rank.loads.end() && load->called_ns < to_ns; ++load) {
      if (most != 0 && 2 * load->bytes >= most) loads.push_back(load->called_ns);
    }
  }
};

// Splits a device's idle time at the calls of its host.
void add(const run::Rank& rank, const OfHost& step, Interval gap, bool leads, Idle& idle) {
  const Calls& c = rank.calls;
  const auto called = [&](std::size_t i) { return c.called_ns[i]; };
  while (gap.from_ns < gap.to_ns) {
    const auto call = std::ranges::upper_bound(step.calls, gap.from_ns, {}, called);
    const auto load = std::ranges::upper_bound(step.loads, gap.from_ns);
    std::int64_t to = gap.to_ns;
    if (call != step.calls.end()) to = std::min(to, called(*call));
    const bool loads = load != step.loads.end() && *load <= to;
    if (loads) to = *load;
    Place place{.at = leads ? Place::At::lead : Place::At::inside};
    if (!leads) {
      place.loads = loads;
      if (!loads && call != step.calls.begin()) {
        place.behind = which_of(c, step.calls, *std::prev(call), true);
      }
      if (!loads && call != step.calls.end()) {
        place.before = which_of(c, step.calls, *call, false);
      }
    }
    idle[place] += static_cast<double>(to - gap.from_ns);
    gap.from_ns = to;
  }
}

}  // namespace

Places by_idle(const Evidence& e, Places ranks) {
  std::vector<double> idle(e.times.ranks.size());
  for (const std::size_t r : ranks) {
    for (const std::size_t s : e.steps) idle[r] += e.times.of(r)[s].idle();
  }
  std::ranges::stable_sort(ranks, std::ranges::greater(), [&](std::size_t r) { return idle[r]; });
  return ranks;
}

Places first_of(const Places& order, std::size_t n) {
  Places some(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n));
  std::ranges::sort(some);
  return some;
}

std::map<std::int64_t, Idle> idle_of(const graph::Model& model, std::size_t r) {
  const run::Rank& rank = model.run().ranks[r];
  const std::vector<Interval> busy = run::busy_of(rank, false);
  std::map<std::int64_t, Idle> all;
  for (const run::Step& in : rank.steps) {
    const OfHost step(rank, in, model.by_call(r));
    Idle& idle = all[in.number];
    // A host that reads a value begins the next step when the value has come.
    const std::int64_t begun_ns = step.from_ns + graph::kGrainNs;
    auto next = std::ranges::upper_bound(busy, begun_ns, {}, &Interval::to_ns);
    if (next == busy.end() || next == busy.begin()) continue;
    // Idle time before a mark belongs to the previous step.
    if (next->from_ns > step.from_ns) {
      const std::int64_t done = std::prev(next)->to_ns;
      Idle& of = model.marked() ? all[in.number - 1] : idle;
      of[{.at = Place::At::end}] +=
          static_cast<double>(std::max(step.from_ns - done, std::int64_t{0}));
      add(rank, step, {step.from_ns, std::min(next->from_ns, step.to_ns)}, true, idle);
    }
    for (auto before = next++; next != busy.end() && next->from_ns < step.to_ns; before = next++) {
      add(rank, step, {before->to_ns, next->from_ns}, false, idle);
    }
  }
  return all;
}

Idle more_idle(const Evidence& e, const Places& ranks, const Places& steps) {
  const auto& of_graph = e.model->run().ranks;
  std::vector<std::map<std::int64_t, Idle>> slow;
  std::vector<std::map<std::int64_t, Idle>> others;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    const auto in = std::ranges::find(of_graph, e.times.ranks[r], &run::Rank::process);
    if (in == of_graph.end()) continue;
    auto& to = std::ranges::binary_search(ranks, r) ? slow : others;
    to.push_back(idle_of(*e.model, static_cast<std::size_t>(in - of_graph.begin())));
  }
  const auto at = [](const std::map<std::int64_t, Idle>& of, std::int64_t step,
                     const Place& place) {
    const auto in = of.find(step);
    if (in == of.end()) return 0.0;
    const auto ns = in->second.find(place);
    return ns == in->second.end() ? 0.0 : ns->second;
  };
  Idle more;
  for (const std::size_t i : steps) {
    const std::int64_t step = e.times.steps[e.steps[i]];
    Idle here;
    for (const auto& of : slow) {
      const auto in = of.find(step);
      if (in == of.end()) continue;
      for (const auto& [place, ns] : in->second) here[place] += ns;
    }
    for (const auto& [place, ns] : here) {
      std::vector<double> usual;
      for (const auto& of : others) usual.push_back(at(of, step, place));
      more[place] += ns - static_cast<double>(slow.size()) * median(std::move(usual));
    }
  }
  return more;
}

namespace {

double sum_of(const Idle& idle, bool (*counts)(const Place&)) {
  double sum = 0;
  for (const auto& [place, ns] : idle) {
    if (counts(place)) sum += ns;
  }
  return sum;
}

double sum_of(const Idle& idle) {
  return sum_of(idle, [](const Place&) { return true; });
}

}  // namespace

bool mostly_leads(const Idle& idle) {
  return 2 * sum_of(idle, [](const Place& p) { return p.at == Place::At::lead; }) > sum_of(idle);
}

const Place* place_of(const Idle& idle) {
  const double half = sum_of(idle) / 2;
  // A step's first batch is loaded at its beginning, or after the previous step.
  const double loads = sum_of(idle, [](const Place& p) { return p.loads; });
  const double ahead = sum_of(idle, [](const Place& p) { return p.at != Place::At::inside; });
  const Place* place = nullptr;
  double most = half;
  for (const auto& [where, ns] : idle) {
    const double here = where.loads ? loads + ahead : ns;
    if (here < most || where.at == Place::At::lead) continue;
    most = here;
    place = &where;
  }
  return place;
}

}  // namespace tprof::why
