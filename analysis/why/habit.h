// The common parts of habits of the program. A habit is a choice that all ranks make alike; its
// cost is what a step would save without it.
#pragma once

#include "why/cause.h"
#include "why/changes.h"

namespace tprof::why {

// Adds the finding with its `share`, what it `saves`, and `who` it is about if not all, unless that
// is too small to report. `who`: indices into Times::ranks.
void tell(const Evidence& e, check::Kind kind, const Saving& saving, check::Values values,
          check::Findings& found, const Places& who);
// The same of all ranks.
void tell(const Evidence& e, check::Kind kind, const Saving& saving, check::Values values,
          check::Findings& found);

// Makes all-gathers of weights begin ahead of the computation that needs them. Returns the share of
// these calls that did not.
double begin_early(const Evidence& e, Changes& change);

}  // namespace tprof::why
