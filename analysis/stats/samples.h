// Durations, and how many of them are in each bin of a histogram.
#pragma once

#include <cstdint>
#include <vector>

#include "stats/spread.h"

namespace tprof::stats {

struct Samples {
  // Adds calls that took `ns` together, each with its share. `edges_ns` are the edges of the bins;
  // empty: not known yet.
  void add(std::uint64_t ns, std::uint64_t calls, const std::vector<std::uint64_t>& edges_ns);
  void add(const Samples& more);  // with the same bins

  Spread time;
  std::vector<std::uint64_t> bins;
};

}  // namespace tprof::stats
