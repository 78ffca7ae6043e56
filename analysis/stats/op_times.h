// How long the calls of each operation took, by their lines: the ledger has sums and maxima only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "collect/passes.h"
#include "stats/spread.h"
#include "stats/steps.h"
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
  RankedSpread device;  // of a group's calls their share each

  bool on_device() const { return device.time.count != 0; }
  const RankedSpread& best() const { return on_device() ? device : host; }
};

using OpTimes = std::map<OpKey, OpTime>;

// Of calls that were executed when called and have a line; in these steps, where any are asked for.
// From the lines of the next pass, until which `found` stays where it is; files that can't be read
// are left out.
void want_op_times(collect::Passes& passes, const steps::Found& found,
                   const std::optional<StepRange>& only, std::optional<OpTimes>& to);

}  // namespace tprof::stats
