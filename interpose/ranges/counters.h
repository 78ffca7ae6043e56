// Counters that the program tells: one line each, under the rules of ranges.
#pragma once

#include <cstdint>

#include "interpose/format/counters.h"

namespace tprof::ranges {

// `at_ns`: CLOCK_MONOTONIC. Budget: as a range's push and pop.
void count(const Counter& counter, std::uint64_t at_ns);

}  // namespace tprof::ranges
