// Splits what the ledgers leave together, the calls that no autograd thread made, by what the event
// lines tell of them.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "collect/passes.h"
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

// Reads the lines of the next pass, and refers to `found` until then. Calls in files that can't be
// read are `other`.
void want_rest(collect::Passes& passes, const steps::Found& found, std::optional<Rest>& to);

}  // namespace tprof::stats
