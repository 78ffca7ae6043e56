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

  void state(team::Archive& archive, const Process& rank) {
    archive(calls, looked);
    for (SlowCall& c : calls) c.rank = &rank;
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
struct Candidates : collect::Collector {
  Candidates(const Process& rank, const Asked& what)
      : Collector(rank), asked(what), host(what.most), device(what.most) {}

  bool wants_times() const override { return true; }

  void call(const Event& e) override {
    if (e.unfinished || e.captured || e.failed || !e.chosen) return;
    see(host, {.rank = &rank_, .time_ns = e.dur_ns, .ts_ns = e.ts_ns, .line = e, .bytes = e.bytes});
  }

  void device_time(const read::DeviceTime& t) override {
    if (t.launch || !t.chosen || t.name == kGroupName) return;
    see(device, {.rank = &rank_,
                 .time_ns = t.dur_ns,
                 .ts_ns = t.ts_ns - t.queued_ns,
                 .device = t,
                 .calls = t.calls});
  }

  void state(team::Archive& archive) override {
    host.state(archive, rank_);
    device.state(archive, rank_);
  }

  void see(Longest& longest, SlowCall call) const {
    if (in_steps(asked.only, asked.found, rank_, call.ts_ns)) longest.see(std::move(call));
  }

  const Asked& asked;
  Longest host;
  Longest device;
};

// Finds the lines of calls whose device times are known.
struct TheirLines : collect::Collector {
  TheirLines(const Process& rank, std::vector<SlowCall> wanted)
      : Collector(rank), calls(std::move(wanted)), seen(calls.size()) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const SlowCall& c = calls[i];
      called[{c.device->thread, c.ts_ns}] = i;
      if (c.calls > 1 && c.device->comm && c.device->seq) groups.push_back(i);
    }
  }

  void call(const Event& e) override {
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

  void state(team::Archive& archive) override {
    archive(calls);
    for (SlowCall& c : calls) c.rank = &rank_;
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

void want_lines(collect::Passes& passes, const std::shared_ptr<const Asked>& asked,
                std::optional<Slowest>& to) {
  std::map<const Process*, std::vector<SlowCall>> by_rank;
  for (SlowCall& c : std::exchange(to->calls, {})) by_rank[c.rank].push_back(std::move(c));
  passes.want(
      [by_rank = std::move(by_rank)](const Process& rank, collect::Collectors& all) {
        const auto wanted = by_rank.find(&rank);
        if (wanted == by_rank.end()) return;
        collect::want<TheirLines>(rank, all, wanted->second);
      },
      [&passes, asked, &to](const collect::Lines& lines) {
        for (const Process* p : passes.job().processes) {
          const auto* found = lines.of<TheirLines>(p);
          if (found == nullptr) continue;
          to->calls.insert(to->calls.end(), found->calls.begin(), found->calls.end());
        }
        order(*asked, *to);
      });
}

Slowest slowest_of(const job::Job& job, const collect::Lines& lines) {
  Slowest slowest;
  std::vector<SlowCall> of_host;
  std::uint64_t on_host = 0;
  for (const Process* p : job.processes) {
    const auto* rank = lines.of<Candidates>(p);
    if (rank == nullptr) continue;
    slowest.calls.insert(slowest.calls.end(), rank->device.calls.begin(), rank->device.calls.end());
    of_host.insert(of_host.end(), rank->host.calls.begin(), rank->host.calls.end());
    slowest.looked += rank->device.looked;
    on_host += rank->host.looked;
  }
  slowest.on_device = !slowest.calls.empty();
  if (slowest.on_device) return slowest;
  slowest.calls = std::move(of_host);
  slowest.looked = on_host;
  return slowest;
}

}  // namespace

void want_slowest(collect::Passes& passes, std::size_t most, const steps::Found& found,
                  const std::optional<StepList>& only, std::optional<Slowest>& to) {
  const auto asked = std::make_shared<const Asked>(Asked{most, found, only});
  passes.want([asked](const Process& rank,
                      collect::Collectors& all) { collect::want<Candidates>(rank, all, *asked); },
              [&passes, asked, &to](const collect::Lines& lines) {
                to = slowest_of(passes.job(), lines);
                to->on_device ? want_lines(passes, asked, to) : order(*asked, *to);
              });
}

}  // namespace tprof::stats
