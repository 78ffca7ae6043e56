#include "check/deadlock.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tprof::check {

namespace {

using read::Process;

// Not by address: the same files would give other answers.
struct ByRank {
  bool operator()(const Process* a, const Process* b) const {
    return std::tie(a->header.rank, a->file) < std::tie(b->header.rank, b->file);
  }
};
using Ranks = std::set<const Process*, ByRank>;

// Follows waits from a rank to calls, from these to ranks, and so on. Each call is followed once.
template <typename CallsOf, typename RanksOf>
Ranks reached(const Process* from, const CallsOf& calls_of, const RanksOf& ranks_of) {
  Ranks all;
  std::set<const Missed*> followed;
  for (Processes open{from}; !open.empty();) {
    const std::vector<const Missed*> calls = calls_of(open.back());
    open.pop_back();
    for (const Missed* m : calls) {
      if (!followed.insert(m).second) continue;
      for (const Process* p : ranks_of(*m)) {
        if (all.insert(p).second) open.push_back(p);
      }
    }
  }
  return all;
}

Processes members_of_deadlock(const Waits& waits, const Processes& all) {
  const auto waits_on = [&](const Process* p) {
    const auto on = waits.on.find(p);
    return on == waits.on.end() ? nullptr : on->second;
  };
  const auto waited_for = [&](const Process* p) {
    const auto on = [&](const Process* q) {
      const Missed* m = waits_on(q);
      return m == nullptr ? std::vector<const Missed*>() : std::vector{m};
    };
    return reached(p, on, [](const Missed& m) { return m.absent; });
  };
  const auto waiting_for = [&](const Process* p) {
    const auto came = [&](const Missed& m) {
      return select(m.came, [&](const Process& q) { return waits_on(&q) == &m; });
    };
    return reached(
        p, [&](const Process* q) { return waits.missed_by(q); }, came);
  };
  const Process* p = *std::ranges::find_if(all, waits_on);
  while (true) {
    const Ranks ahead = waited_for(p);
    if (!std::ranges::all_of(ahead, waits_on)) return {};
    const Ranks behind = waiting_for(p);
    const auto further =
        std::ranges::find_if(ahead, [&](const Process* q) { return !behind.contains(q); });
    if (further == ahead.end() && ahead.contains(p)) {
      return select(all, [&](const Process& q) { return ahead.contains(&q); });
    }
    p = further == ahead.end() ? *ahead.begin() : *further;
  }
}

Processes odd_of(const Deadlock& deadlock) {
  const std::vector<Deadlock::Place>& places = deadlock.places;
  // The call that should not be the first of two has fewer ranks in it, or fewer came to it.
  const auto ranks = [](const Deadlock::Place& place) {
    return std::pair(place.who.size(), place.on->came.size());
  };
  if (places.size() == 2 && ranks(places[0]) != ranks(places[1])) {
    return std::ranges::min(places, {}, ranks).who;
  }
  std::map<const Process*, std::size_t> ends;
  std::size_t messages = 0;
  for (const auto& [on, who] : places) {
    if (!on->of_message()) continue;
    ++messages;
    ++ends[on->came[0]];
    ++ends[on->absent[0]];
  }
  const Processes in_each =
      select(deadlock.who, [&](const Process& p) { return ends[&p] == messages; });
  return messages > 1 && in_each.size() == 1 ? in_each : deadlock.who;
}

}  // namespace

Deadlock deadlock_of(const Waits& waits, const Processes& all) {
  Deadlock deadlock{.who = members_of_deadlock(waits, all)};
  for (const Process* p : deadlock.who) {
    const Missed* on = waits.on.at(p);
    const auto same = std::ranges::find(deadlock.places, on, &Deadlock::Place::on);
    (same != deadlock.places.end() ? *same : deadlock.places.emplace_back(on)).who.push_back(p);
  }
  deadlock.odd = odd_of(deadlock);
  return deadlock;
}

}  // namespace tprof::check
