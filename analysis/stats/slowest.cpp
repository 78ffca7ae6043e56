#include "stats/slowest.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "interpose/format/record.h"

namespace tprof::stats {
namespace {

using read::Event;
using read::Process;

bool longer(const SlowCall& a, const SlowCall& b) {
  const auto key = [](const SlowCall& c) {
    return std::tuple(-c.time_ns, c.rank->header.rank, c.ts_ns);
  };
  return key(a) < key(b);
}

// Keeps the longest few of many calls.
class Longest {
 public:
  explicit Longest(std::size_t most) : most_(most) {}

  void see(SlowCall call) {
    looked += call.calls;
    if (calls.size() == most_ && call.time_ns <= calls.back().time_ns) return;
    calls.insert(std::ranges::upper_bound(calls, call, longer), std::move(call));
    if (calls.size() > most_) calls.pop_back();
  }

  std::vector<SlowCall> calls;  // the longest first
  std::uint64_t looked = 0;

 private:
  std::size_t most_;
};

struct Asked {
  std::size_t most;
  const steps::Found& found;
  std::optional<StepList> only;
};

// Keeps candidates by both times, since only the end of the lines shows whether the device's are
// known.
struct Candidates {
  Candidates(const Process& rank, const Asked& what)
      : rank_(rank), asked(what), host(what.most), device(what.most) {}

  void call(const Event& e) {
    if (e.unfinished || e.captured || e.failed || !e.chosen) return;
    see(host, {.rank = &rank_, .time_ns = e.dur_ns, .ts_ns = e.ts_ns, .line = e, .bytes = e.bytes});
  }

  void device_time(const read::DeviceTime& t) {
    if (t.launch || !t.chosen || t.name == kGroupName) return;
    see(device, {.rank = &rank_,
                 .time_ns = t.dur_ns,
                 .ts_ns = t.ts_ns - t.queued_ns,
                 .device = t,
                 .calls = t.calls});
  }

  void see(Longest& longest, SlowCall call) const {
    if (in_steps(asked.only, asked.found, rank_, call.ts_ns)) longest.see(std::move(call));
  }

  const Process& rank_;
  const Asked& asked;
  Longest host;
  Longest device;
};

// Finds the lines of calls whose device times are known.
struct TheirLines {
  explicit TheirLines(std::vector<SlowCall> wanted) : calls(std::move(wanted)), seen(calls.size()) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const SlowCall& c = calls[i];
      called[{c.device->thread, c.ts_ns}] = i;
      if (c.calls > 1 && c.device->comm && c.device->seq) groups.push_back(i);
    }
  }

  void call(const Event& e) {
    if (e.unfinished || e.captured || e.failed) return;
    const auto found = called.find({e.thread, e.ts_ns});
    if (found != called.end() && calls[found->second].device->name == e.name) {
      SlowCall& c = calls[found->second];
      c.line = e;
      if (c.calls == 1) c.bytes = e.bytes;
    }
    if (!e.collective()) return;  // other calls of a group are not numbered together
    for (const std::size_t i : groups) {
      SlowCall& c = calls[i];
      const read::DeviceTime& t = *c.device;
      if (t.comm != e.comm || t.name != e.name || e.seq < *t.seq || e.seq - *t.seq >= c.calls) {
        continue;
      }
      sums[i] = read::saturated_sum(sums[i], e.bytes);
      if (++seen[i] == c.calls) c.bytes = sums[i];
    }
  }

  std::vector<SlowCall> calls;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> called;  // by thread and time
  std::vector<std::size_t> groups;
  std::vector<std::uint64_t> seen;
  std::map<std::size_t, std::uint64_t> sums;
};

// Keeps each collective once, since it took as long as on the slowest of its ranks. Expects the
// order of `longer`.
void each_collective_once(std::vector<SlowCall>& calls) {
  std::set<std::tuple<std::string, std::int64_t, std::uint64_t>> seen;
  std::erase_if(calls, [&](const SlowCall& c) {
    if (!c.line || !c.line->collective()) return false;
    const auto comm = c.rank->comms.find(*c.line->comm);
    if (comm == c.rank->comms.end() || !comm->second.known()) return false;
    return !seen.emplace(comm->second.id, comm->second.nranks, c.line->seq).second;
  });
}

// Puts the longest first, and keeps no more than were asked for.
void order(const Asked& asked, Slowest& slowest) {
  std::ranges::sort(slowest.calls, longer);
  each_collective_once(slowest.calls);
  if (slowest.calls.size() > asked.most) slowest.calls.resize(asked.most);
  for (SlowCall& c : slowest.calls) c.step = steps::step_at(asked.found, c.rank, c.ts_ns);
}

// Finds the lines of these calls.
void find_lines(const run::Lines& lines, std::vector<SlowCall>& calls) {
  std::map<const Process*, std::vector<SlowCall>> by_rank;
  for (SlowCall& c : std::exchange(calls, {})) by_rank[c.rank].push_back(std::move(c));
  lines.each(
      [&](const Process& rank) {
        const auto wanted = by_rank.find(&rank);
        return wanted == by_rank.end() ? std::nullopt
                                       : std::optional<TheirLines>(std::in_place, wanted->second);
      },
      [&](const TheirLines& rank) {
        calls.insert(calls.end(), rank.calls.begin(), rank.calls.end());
      });
}

}  // namespace

Slowest slowest_of(const run::Lines& lines, std::size_t most, const steps::Found& found,
                   const std::optional<StepList>& only) {
  const Asked asked{most, found, only};
  Slowest slowest;
  std::vector<SlowCall> of_host;
  std::uint64_t on_host = 0;
  lines.each([&](const Process& rank) { return Candidates(rank, asked); },
             [&](const Candidates& rank) {
               const auto add = [](std::vector<SlowCall>& to, const std::vector<SlowCall>& more) {
                 to.insert(to.end(), more.begin(), more.end());
               };
               add(slowest.calls, rank.device.calls);
               add(of_host, rank.host.calls);
               slowest.looked += rank.device.looked;
               on_host += rank.host.looked;
             });
  slowest.on_device = !slowest.calls.empty();
  if (slowest.on_device) {
    find_lines(lines, slowest.calls);
  } else {
    slowest.calls = std::move(of_host);
    slowest.looked = on_host;
  }
  order(asked, slowest);
  return slowest;
}

}  // namespace tprof::stats
