// Finds steps of ranks whose own calls don't show them, such as ranks of a tensor-parallel group
// that load no batch. They take over the steps of another rank of a communicator: a step begins
// with the same collective there.
#pragma once

#include "run/lines.h"
#include "steps/found.h"
#include "steps/rank_steps.h"

namespace tprof::steps {

// Returns the ranks that still have no steps.
RanksByWhy share_steps(const run::Lines& lines, const RanksByWhy& none, Found& found);

}  // namespace tprof::steps
