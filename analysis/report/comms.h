// The communicators of a job, as text for people and as JSON for programs.
#pragma once

#include <vector>

#include "report/section.h"
#include "stats/comms.h"

namespace tprof::report {

Section section_of(const std::vector<stats::CommSummary>& comms, For who);

}  // namespace tprof::report
