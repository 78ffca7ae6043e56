// Names steps in sections, and says how these were found.
#pragma once

#include <string>

#include "stats/steps.h"

namespace tprof::report {

std::string named(const stats::StepList& steps);  // "10-", "3-7", "3,5-7"

// The way out where none are known.
inline constexpr const char* kMarkThem =
    "mark them: tprof.step(), or TPROF_STEP=call:FUNCTION that ends each step";

// Returns how they were found, and what is not known about them: a sentence or more, each with its
// full stop.
std::string how_found(const steps::Found& found);

}  // namespace tprof::report
