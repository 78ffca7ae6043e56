// The places that calls came from, as `tprof summary` shows them: NVTX ranges, call sites.
#pragma once

#include "report/section.h"
#include "stats/ranges.h"
#include "stats/sites.h"

namespace tprof::report {

Section section_of(const stats::RangeTotals& totals, For who);
Section section_of(const stats::SiteTotals& totals, For who);

}  // namespace tprof::report
