// In which steps ranks came late.
#pragma once

#include "diagnose/lateness.h"
#include "run/lines.h"
#include "steps/found.h"

namespace tprof::stats {

// Gives the latest arrivals the step in which the rank called.
void put_in_steps(const run::Lines& lines, const steps::Found& found, diagnose::Lateness& lateness);

}  // namespace tprof::stats
