// In which steps ranks came late.
#pragma once

#include "collect/passes.h"
#include "diagnose/lateness.h"
#include "steps/found.h"

namespace tprof::stats {

// Of the latest arrivals: the step in which the rank called. Both stay where they are until the
// lines of the next pass were read.
void want_steps(collect::Passes& passes, diagnose::Lateness& lateness, const steps::Found& found);

}  // namespace tprof::stats
