// The phases of a step in which calls were made, as text for people and as JSON for programs.
#pragma once

#include <vector>

#include "report/section.h"
#include "summary/summary.h"

namespace tprof::report {

std::vector<Section> phase_sections(const stats::Summary& summary, For who);

}  // namespace tprof::report
