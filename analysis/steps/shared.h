// Gives steps to ranks whose own calls do not tell them, as those of a tensor-parallel group that
// load no batch. They have the steps of another rank of a communicator: a step begins with the same
// collective there.
#pragma once

#include "run/lines.h"
#include "steps/found.h"
#include "steps/rank_steps.h"

namespace tprof::steps {

// Returns those of the ranks without steps to which no other could give any.
RanksByWhy share_steps(const run::Lines& lines, const RanksByWhy& none, Found& found);

}  // namespace tprof::steps
