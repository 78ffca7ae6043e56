// In which steps ranks came late.
#pragma once

#include "diagnose/lateness.h"
#include "run/lines.h"
#include "steps/found.h"

namespace tprof::stats {

// Finds who came late. The latest arrivals have the step in which the rank called.
diagnose::Lateness lateness_in_steps(const run::Lines& lines, const steps::Found& found,
                                     const diagnose::Meetings& meetings,
                                     const diagnose::ArrivalReader& arrivals = {});

}  // namespace tprof::stats
