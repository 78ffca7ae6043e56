// The spread of durations, as text for people and as JSON for programs.
#pragma once

#include <string>

#include "report/findings.h"
#include "stats/histogram.h"
#include "stats/op_times.h"

namespace tprof::report {

std::string heading(const stats::Histogram& h);
std::string to_text(const stats::Histogram& h, bool per_rank);
nlohmann::ordered_json to_json(const stats::Histogram& h);

// The times of one line of the operations. Null if nothing is known of it.
nlohmann::ordered_json to_json(const stats::OpTimes& times, const stats::OpKey& key);

}  // namespace tprof::report
