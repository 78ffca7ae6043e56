// Shows the memory that the program has allocated (TPROF_MEMORY) as lanes, whenever a value has
// changed. One caller at a time.
#pragma once

#include <cstdint>

#include "interpose/format/ring_file.h"
#include "interpose/lines/metric_lanes.h"

namespace tprof {

class MemoryLanes {
 public:
  // Calls f(counter) for each value that has changed since it was last shown. True: there was one.
  // `window` is the open one; each window begins with all values. 0: no window is open, and nothing
  // is shown.
  template <typename F>
  bool changes(const Head& head, std::uint32_t window, F&& f) {
    if (window == 0 || head.memory_booked.load(std::memory_order_acquire) == 0) {
      return false;
    }
    bool any = false;
    for (std::uint8_t place = 0; place < kMemoryPlaces; ++place) {
      const std::uint64_t bytes = head.memory[place].bytes.load(std::memory_order_acquire);
      const bool known = window == window_ && shown_[place] != 0;
      // shown_ is one more than the value that was shown; 0: none was shown yet.
      if (known ? bytes == shown_[place] - 1 : head.memory[place].peak.load() == 0) continue;
      shown_[place] = bytes + 1;
      Counter c{};
      char room[16];
      metrics::add_name(c, kMemoryLane);
      metrics::add_name(c, memory_key(place, room));
      c.values = 1;
      c.value[kMaxCounterValues - 1] = static_cast<double>(bytes);
      f(c);
      any = true;
    }
    window_ = window;
    return any;
  }

 private:
  std::uint64_t shown_[kMemoryPlaces] = {};
  std::uint32_t window_ = 0;
};

}  // namespace tprof
