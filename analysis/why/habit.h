// Habits of the program have this in common: choices that are alike on all ranks, and what a step
// would be shorter by without them.
#pragma once

#include "why/cause.h"
#include "why/changes.h"

namespace tprof::why {

// Adds the finding, with its `share` and what it `saves`, unless that is nobody's concern.
void tell(const Evidence& e, check::Kind kind, const Saving& saving, check::Values values,
          check::Findings& found);

// Weights are gathered ahead of the computation that they are for. Returns which share of these
// calls was not.
double begin_early(const Evidence& e, Changes& change);

}  // namespace tprof::why
