// Records the program's counters: one line for each value, as for ranges.
#pragma once

#include <cstdint>

#include "interpose/format/counters.h"

namespace tprof::marks {

// `at_ns` is on CLOCK_MONOTONIC. Budget: as a range's push and pop.
void count(const Counter& counter, std::uint64_t at_ns);

}  // namespace tprof::marks
