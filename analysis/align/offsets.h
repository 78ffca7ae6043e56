// One time axis for all processes.
#pragma once

#include <cstdint>
#include <vector>

#include "read/process.h"

namespace tprof::align {

// CLOCK_REALTIME at ts 0 of the common axis: where the earliest process has its own.
std::int64_t common_base_ns(const std::vector<const read::Process*>& processes);

// What to add to a process's times. Wall clocks decide, so hosts agree as well as NTP or PTP keeps
// them; within one host the clock is one.
std::int64_t shift_ns(const read::Process& process, std::int64_t base_ns);

}  // namespace tprof::align
