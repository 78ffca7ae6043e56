// Two sinks: the lanes of metrics (TPROF_METRICS) and of the program's memory (TPROF_MEMORY). They
// go into the open window.
#pragma once

#include <cstdint>

#include "interpose/format/windows.h"
#include "interpose/write/line_batch.h"
#include "interpose/write/memory_lanes.h"
#include "interpose/write/metric_sampler.h"
#include "interpose/write/sink.h"

namespace tprof {

class MetricsSink : public Sink {
 public:
  void begin(LineBatch& lines, const SinkStart& start) {
    sampler_.begin(start.metrics, start.now_ns);
    if (sampler_.due(start.now_ns)) read(lines, start.now_ns);
  }
  void tick(LineBatch& lines, const ClockAnchor& now) {
    if (sampler_.due(now.mono_ns)) read(lines, now.mono_ns);
  }
  std::uint32_t sleep_ms(std::uint64_t now_ns) const { return sampler_.sleep_ms(now_ns); }
  void at_end(LineBatch& lines, std::uint64_t now_ns) {
    if (sampler_.due_at_end(now_ns)) read(lines, now_ns);
  }
  void leave() { sampler_.after_fork(); }

 private:
  void read(LineBatch& lines, std::uint64_t now_ns) {
    lines.begin();
    sampler_.read(now_ns, window_at(lines.view.head().windows, now_ns),
                  [&](const Counter& c, std::uint64_t at_ns) { lines.metric(c, at_ns); });
    lines.flush();
  }

  metrics::Sampler sampler_;
};

class MemorySink : public Sink {
 public:
  void tick(LineBatch& lines, const ClockAnchor& now) { show(lines, now.mono_ns); }
  void at_end(LineBatch& lines, std::uint64_t now_ns) { show(lines, now_ns); }

 private:
  void show(LineBatch& lines, std::uint64_t now_ns) {
    lines.begin();
    const std::uint32_t window = window_at(lines.view.head().windows, now_ns);
    if (memory_.changes(lines.view.head(), window,
                        [&](const Counter& c) { lines.metric(c, now_ns); })) {
      lines.flush();
    }
  }

  MemoryLanes memory_;
};

}  // namespace tprof
