// The last two arrivals at a collective, on one axis of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace tprof::diagnose {

struct Arrival {
  std::int64_t at_ns = std::numeric_limits<std::int64_t>::min();
  std::size_t host = 0;  // index in MetComm::hosts
};

struct LastTwo {
  Arrival last;
  Arrival before;

  std::int64_t late_ns() const { return last.at_ns - before.at_ns; }
  void take(const Arrival& arrival) {
    if (arrival.at_ns > last.at_ns) {
      before = std::exchange(last, arrival);
    } else if (arrival.at_ns > before.at_ns) {
      before = arrival;
    }
  }
};

}  // namespace tprof::diagnose
