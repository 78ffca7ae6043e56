#include "stats/op_times.h"

#include "stats/groups.h"

namespace tprof::stats {

static void add(OpTime& to, const read::Event& e, const read::DeviceTime* t) {
  to.host.time.add(not_below_0(e.dur_ns));
  if (t != nullptr) to.device.time.add_shares(not_below_0(t->dur_ns), t->calls);
}

void RankedSpread::add(const RankedSpread& other) {
  time.add(other.time);
  ranks.insert(other.ranks.begin(), other.ranks.end());
}

OpTimes op_times(const run::Lines& lines) {
  OpTimes all;
  const auto operation = [](const read::Process& rank) {
    return [&rank](const read::Event& e) { return std::optional(op_of(e, rank)); };
  };
  each_group<OpTime>(lines, operation, [&](const auto& rank, const OpKey& key, OpTime& times) {
    for (RankedSpread* spread : {&times.host, &times.device}) {
      if (rank.header.rank && spread->time.count != 0) spread->ranks.insert(*rank.header.rank);
    }
    all[key].host.add(times.host);
    all[key].device.add(times.device);
  });
  return all;
}

}  // namespace tprof::stats
