// In which steps ranks came late.
#pragma once

#include "collect/passes.h"
#include "diagnose/lateness.h"
#include "steps/found.h"

namespace tprof::stats {

// Gives the latest arrivals the step in which the rank called. Reads the lines of the next pass,
// and refers to both until then.
void want_steps(collect::Passes& passes, diagnose::Lateness& lateness, const steps::Found& found);

}  // namespace tprof::stats
