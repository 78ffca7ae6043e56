// A step of the program, from one moment to another.
#pragma once

#include <cstdint>

namespace tprof {

struct StepInterval {
  static constexpr std::uint64_t kOpen = UINT64_MAX;

  std::int64_t step = 0;
  std::uint64_t ordinal = 0;  // 0 for the first that was seen; by the numbers, where there are any
  std::uint64_t from_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t to_ns = kOpen;
  std::uint32_t unseen = 0;  // for an open range: how many of the last looks did not find it
};

}  // namespace tprof
