#include "stats/op_times.h"

#include <bit>

#include "run/lines.h"
#include "stats/timed_calls.h"

namespace tprof::stats {
namespace {

using read::Event;
using read::Process;

struct RankTimes {
  RankTimes(const Process& rank, const steps::Found& steps,
            const std::optional<StepList>& steps_asked)
      : rank_(rank), found(steps), only(steps_asked) {}

  void call(const Event& e) {
    if (e.unfinished || e.captured || e.failed || !e.chosen) return;
    if (!in_steps(only, found, rank_, e.ts_ns)) return;
    of(e).host.time.add(not_below_0(e.dur_ns));
    calls.call(e);
  }
  void device_time(const read::DeviceTime& t) { calls.time(t); }
  void end() {
    calls.finish();
    known = {};
  }

  // A rank has few operations, and each call looks for its own: a key of strings is made once.
  OpTime& of(const Event& e) {
    const auto size = static_cast<int>(std::bit_width(e.bytes));
    for (const Known& k : known) {
      if (k.bucket == e.bucket && k.comm == e.comm && k.size == size && k.key->name == e.name &&
          k.key->dtype == e.dtype) {
        return *k.times;
      }
    }
    auto& [key, all] = *times.try_emplace(op_of(e, rank_)).first;
    if (known.size() < kMostKnown) known.push_back({e.bucket, e.comm, size, &key, &all});
    return all;
  }

  static constexpr std::size_t kMostKnown = 64;
  struct Known {
    Bucket bucket;
    std::optional<std::int64_t> comm;
    int size;  // std::bit_width of bytes, from which the key's class follows
    const OpKey* key;
    OpTime* times;
  };
  std::vector<Known> known{};
  const Process& rank_;
  const steps::Found& found;
  std::optional<StepList> only;
  OpTimes times;
  TimedCalls calls{[this](const Event& e, const read::DeviceTime* t) {
    if (t == nullptr) return;
    of(e).device.time.add_shares(not_below_0(t->dur_ns), t->calls);
  }};
};

}  // namespace

void RankedSpread::add(const RankedSpread& other) {
  time.add(other.time);
  ranks.insert(other.ranks.begin(), other.ranks.end());
}

OpTimes op_times(const run::Lines& lines, const steps::Found& found,
                 const std::optional<StepList>& only) {
  OpTimes all;
  lines.each([&](const Process& rank) { return RankTimes(rank, found, only); },
             [&](const RankTimes& rank) {
               const std::optional<std::int64_t>& number = rank.rank_.header.rank;
               for (auto [key, times] : rank.times) {
                 for (RankedSpread* spread : {&times.host, &times.device}) {
                   if (number && spread->time.count != 0) spread->ranks.insert(*number);
                 }
                 all[key].host.add(times.host);
                 all[key].device.add(times.device);
               }
             });
  return all;
}

}  // namespace tprof::stats
