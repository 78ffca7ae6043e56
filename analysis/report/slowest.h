// The calls that took longest, as text for people and as JSON for programs.
#pragma once

#include <string>

#include "report/findings.h"
#include "stats/slowest.h"

namespace tprof::report {

// `all` is the number of calls of the job, or of the steps that were asked for.
std::string to_text(const stats::Slowest& slowest, const steps::Found& found, std::uint64_t all);
nlohmann::ordered_json to_json(const stats::Slowest& slowest);

}  // namespace tprof::report
