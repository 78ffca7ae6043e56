// The ranks that came last to collectives, as text for people and as JSON for programs.
#pragma once

#include <vector>

#include "diagnose/lateness.h"
#include "report/section.h"
#include "steps/found.h"

namespace tprof::report {

std::vector<Section> sections_of(const diagnose::Lateness& lateness, const steps::Found& found,
                                 For who);

}  // namespace tprof::report
