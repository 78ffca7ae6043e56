// Records counters that the program tells: one line each, under the rules of ranges.
#pragma once

#include <cstdint>

#include "interpose/format/counters.h"

namespace tprof::marks {

// `at_ns` is on CLOCK_MONOTONIC. Budget: that of a range's push and pop.
void count(const Counter& counter, std::uint64_t at_ns);

}  // namespace tprof::marks
