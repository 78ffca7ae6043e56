// The communicators of a job, as text for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "report/json.h"
#include "stats/comms.h"

namespace tprof::report {

std::string comm_table(const std::vector<stats::CommSummary>& comms);
Json to_json(const std::vector<stats::CommSummary>& comms);

}  // namespace tprof::report
