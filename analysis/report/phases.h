// The phases of a step in which calls were made, as text for people and as JSON for programs.
#pragma once

#include <string>

#include "report/findings.h"
#include "summary/summary.h"

namespace tprof::report {

std::string phase_table(const stats::Summary& summary);
std::string rest_table(const stats::Rest& rest, const steps::Found& found);
nlohmann::ordered_json to_json(const stats::Rest& rest);

}  // namespace tprof::report
