#include "tables/slowest.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace tprof::tables {
namespace {

using read::Event;
using read::Process;

bool longer(const SlowCall& a, const SlowCall& b) {
  const auto key = [](const SlowCall& c) {
    return std::tuple(-c.time_ns, c.rank->header.rank, c.line.ts_ns);
  };
  return key(a) < key(b);
}

// The longest few of many calls.
struct Longest {
  void see(SlowCall call, std::size_t most) {
    looked += call.calls;
    if (calls.size() == most && call.time_ns <= calls.back().time_ns) return;
    calls.insert(std::ranges::upper_bound(calls, call, longer), std::move(call));
    if (calls.size() > most) calls.pop_back();
  }
  void add(const Longest& more) {
    looked += more.looked;
    calls.insert(calls.end(), more.calls.begin(), more.calls.end());
  }

  std::vector<SlowCall> calls;  // the longest first
  std::uint64_t looked = 0;
};

// By both times, since only the end of the lines shows whether the device's are known.
enum Times { kHosts, kDevices };

struct Candidates {
  void timed(const Event& e, const read::DeviceTime* t) {
    if (!e.executed() || !e.chosen) return;
    longest[kHosts].see({.rank = &rank, .time_ns = e.dur_ns, .line = e, .bytes = e.bytes}, most);
    if (t == nullptr) return;
    const auto bytes = t->calls == 1 ? std::optional(e.bytes) : std::nullopt;
    longest[kDevices].see(
        {.rank = &rank, .time_ns = t->dur_ns, .line = e, .calls = t->calls, .bytes = bytes}, most);
  }

  const Process& rank;
  std::size_t most;
  std::array<Longest, 2> longest{};
};

// Keeps each collective once, since it took as long as on the slowest of its ranks. Expects the
// order of `longer`.
void each_collective_once(std::vector<SlowCall>& calls) {
  std::set<std::tuple<std::string, std::int64_t, std::uint64_t>> seen;
  std::erase_if(calls, [&](const SlowCall& c) {
    const read::Comm* comm = c.line.collective() ? read::comm_of(*c.rank, c.line.comm) : nullptr;
    if (comm == nullptr || !comm->known()) return false;
    return !seen.emplace(comm->id, comm->nranks, c.line.seq).second;
  });
}

// Adds up the bytes of a rank's groups of collectives: other calls of a group are not numbered
// together.
struct GroupBytes {
  void call(const Event& e) {
    if (!e.executed() || !e.collective()) return;
    for (auto& [group, seen, bytes] : groups) {
      const Event& first = group->line;
      const bool inside = first.comm == e.comm && first.name == e.name && e.seq >= first.seq &&
                          e.seq - first.seq < group->calls;
      if (!inside) continue;
      bytes = read::saturated_sum(bytes, e.bytes);
      if (++seen == group->calls) group->bytes = bytes;
    }
  }

  std::vector<std::tuple<SlowCall*, std::uint64_t, std::uint64_t>> groups;
};

void find_bytes(const run::Lines& lines, std::vector<SlowCall>& calls) {
  std::map<const Process*, GroupBytes> of_ranks;
  for (SlowCall& c : calls) {
    if (!c.bytes && c.line.collective()) of_ranks[c.rank].groups.emplace_back(&c, 0, 0);
  }
  if (of_ranks.empty()) return;
  lines.each(
      [&](const Process& rank) {
        const auto of = of_ranks.find(&rank);
        return of == of_ranks.end() ? std::nullopt : std::optional(of->second);
      },
      [](const GroupBytes& /*they are in their place*/) {});
}

}  // namespace

Slowest slowest_of(const run::Lines& lines, std::size_t most, const steps::Found& found) {
  std::array<Longest, 2> all;
  lines.each(
      [&](const Process& rank) {
        return Candidates{rank, most};
      },
      [&](const Candidates& rank) {
        all[kHosts].add(rank.longest[kHosts]);
        all[kDevices].add(rank.longest[kDevices]);
      });
  const bool on_device = !all[kDevices].calls.empty();
  Longest& longest = all[on_device ? kDevices : kHosts];
  Slowest slowest = {on_device, longest.looked, std::move(longest.calls)};
  std::ranges::sort(slowest.calls, longer);
  each_collective_once(slowest.calls);
  if (slowest.calls.size() > most) slowest.calls.resize(most);
  for (SlowCall& c : slowest.calls) c.step = steps::step_at(found, c.rank, c.line.ts_ns);
  find_bytes(lines, slowest.calls);
  return slowest;
}

}  // namespace tprof::tables
