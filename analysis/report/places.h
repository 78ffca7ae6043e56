// Where calls came from, as `tprof summary` shows it: NVTX ranges.
#pragma once

#include <string>

#include "report/findings.h"
#include "stats/ranges.h"

namespace tprof::report {

std::string range_table(const stats::RangeTotals& totals);
nlohmann::ordered_json to_json(const stats::RangeTotals& totals);

}  // namespace tprof::report
