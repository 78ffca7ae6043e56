// Splits what the ledgers leave together, the calls that no autograd thread made, by what the event
// lines tell of them.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "run/lines.h"
#include "stats/told_phases.h"
#include "stats/totals.h"
#include "steps/found.h"

namespace tprof::stats {

struct Rest {
  // They add up to the ledgers' calls.
  std::map<std::pair<StepPhase, ToldBy>, Buckets> told{};
  // Ranks whose order tells nothing: not every call has a line, or threads have no name.
  std::vector<const read::Process*> unordered{};
};

// Calls in files that can't be read are `other`.
Rest rest_of(const run::Lines& lines, const steps::Found& found);

}  // namespace tprof::stats
