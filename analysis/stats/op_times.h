// How long the calls of each operation took, by their lines: the ledger has sums and maxima only.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "run/lines.h"
#include "stats/spread.h"
#include "stats/totals.h"

namespace tprof::stats {

// Durations, and the ranks that have any.
struct RankedSpread {
  Spread time;
  std::set<std::int64_t> ranks;

  void add(const RankedSpread& other);
};

struct OpTime {
  RankedSpread host;
  RankedSpread device;  // calls of a group have a share each

  bool on_device() const { return device.time.count != 0; }
  const RankedSpread& best() const { return on_device() ? device : host; }
};

using OpTimes = std::map<OpKey, OpTime>;

// Covers calls that were executed when called and have a line. Leaves out files that can't be read.
OpTimes op_times(const run::Lines& lines);

}  // namespace tprof::stats
