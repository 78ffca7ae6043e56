// The places that calls came from, as `tprof summary` shows them: NVTX ranges, call sites.
#pragma once

#include <string>

#include "report/findings.h"
#include "stats/ranges.h"
#include "stats/sites.h"

namespace tprof::report {

std::string range_table(const stats::RangeTotals& totals);
nlohmann::ordered_json to_json(const stats::RangeTotals& totals);

std::string site_table(const stats::SiteTotals& totals);
nlohmann::ordered_json to_json(const stats::SiteTotals& totals);

}  // namespace tprof::report
