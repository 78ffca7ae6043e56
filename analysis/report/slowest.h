// The calls that took longest, as text for people and as JSON for programs.
#pragma once

#include <cstdint>

#include "report/section.h"
#include "stats/slowest.h"

namespace tprof::report {

// `all` is the number of calls of the job, or of the steps that were asked for.
Section section_of(const stats::Slowest& slowest, const steps::Found& found, std::uint64_t all,
                   For who);

}  // namespace tprof::report
