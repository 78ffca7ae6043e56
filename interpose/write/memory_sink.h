// A sink: the memory that the program has allocated (TPROF_MEMORY), as lanes in the open window,
// whenever a value has changed. Each window begins with all values.
#pragma once

#include <cstdint>

#include "interpose/format/windows.h"
#include "interpose/lines/metric_lanes.h"
#include "interpose/write/line_batch.h"
#include "interpose/write/sink.h"

namespace tprof {

class MemorySink : public Sink {
 public:
  void tick(LineBatch& lines, const ClockAnchor& now) { show(lines, now.mono_ns); }
  void at_end(LineBatch& lines, std::uint64_t now_ns) { show(lines, now_ns); }

 private:
  void show(LineBatch& lines, std::uint64_t now_ns) {
    const Head& head = lines.view.head();
    const std::uint32_t window = window_at(head.windows, now_ns);
    if (window == 0 || head.memory_known.load(std::memory_order_acquire) == 0) return;
    bool any = false;
    lines.begin();
    for (std::uint8_t place = 0; place < kMemoryPlaces; ++place) {
      const std::uint64_t bytes = head.memory[place].bytes.load(std::memory_order_acquire);
      const bool known = window == window_ && shown_[place] != 0;
      if (known ? bytes == shown_[place] - 1 : head.memory[place].peak.load() == 0) continue;
      shown_[place] = bytes + 1;
      Counter c{};
      char room[16];
      metrics::add_name(c, kMemoryLane);
      metrics::add_name(c, memory_key(place, room));
      c.values = 1;
      c.value[kMaxCounterValues - 1] = static_cast<double>(bytes);
      lines.metric(c, now_ns);
      any = true;
    }
    window_ = window;
    if (any) lines.flush();
  }

  std::uint64_t shown_[kMemoryPlaces] = {};  // one more than the value that was; 0: none yet
  std::uint32_t window_ = 0;
};

}  // namespace tprof
