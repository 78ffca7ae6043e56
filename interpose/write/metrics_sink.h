// A sink: the lanes of the process's metrics (TPROF_METRICS), in the open window.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interpose/format/windows.h"
#include "interpose/lines/metric_lanes.h"
#include "interpose/write/line_batch.h"
#include "interpose/write/metric_sources.h"
#include "interpose/write/sink.h"

namespace tprof {

class MetricsSink : public Sink {
 public:
  // The first reading is taken at once: growth counts from it.
  void begin(LineBatch& lines, const SinkStart& start) {
    if (start.metrics.every_ns == 0) return;
    every_ns_ = start.metrics.every_ns;
    next_ns_ = start.now_ns;
    sources_.open("");
    tick_at(lines, start.now_ns);
  }
  void tick(LineBatch& lines, const ClockAnchor& now) { tick_at(lines, now.mono_ns); }
  std::uint32_t sleep_ms(std::uint64_t now_ns) const {
    const std::uint64_t ms = next_ns_ <= now_ns ? 1 : (next_ns_ - now_ns) / 1'000'000 + 1;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(ms, UINT32_MAX));
  }
  // Soon after the last reading, another one is worth nothing.
  void at_end(LineBatch& lines, std::uint64_t now_ns) {
    const bool soon = last_.at_ns != kNotRead && now_ns - last_.at_ns < kShortestMetricsNs;
    if (every_ns_ != 0 && !soon) read(lines, now_ns);
  }
  void leave() { sources_.close(); }

 private:
  void tick_at(LineBatch& lines, std::uint64_t now_ns) {
    if (now_ns < next_ns_) return;
    next_ns_ += ((now_ns - next_ns_) / every_ns_ + 1) * every_ns_;
    read(lines, now_ns);
  }

  // Nothing is read while no window is open. Growth between two windows is in neither.
  void read(LineBatch& lines, std::uint64_t now_ns) {
    const std::uint32_t window = window_at(lines.view.head().windows, now_ns);
    const bool goes_on = window == window_;
    window_ = window;
    if (window == 0) return;
    const ProcessMetrics before = last_;
    sources_.read(last_);
    lines.begin();
    metrics::each_lane(goes_on ? &before : nullptr, last_, "",
                       [&](const Counter& c) { lines.metric(c, last_.at_ns); });
    lines.flush();
  }

  std::uint64_t next_ns_ = UINT64_MAX;  // never
  std::uint64_t every_ns_ = 0;
  std::uint32_t window_ = 0;
  ProcessMetrics last_;
  metrics::Sources sources_;
};

}  // namespace tprof
