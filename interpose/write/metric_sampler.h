// Decides when metrics are read. One caller at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interpose/lines/metric_lanes.h"
#include "interpose/write/metric_sources.h"

namespace tprof::metrics {

class Sampler {
 public:
  // The first reading is due at once: growth counts from it.
  void begin(const MetricsWanted& wanted, std::uint64_t now_ns) {
    if (wanted.every_ns == 0) return;
    every_ns_ = wanted.every_ns;
    next_ns_ = now_ns;
    sources_.open("");
  }

  bool due(std::uint64_t now_ns) const { return now_ns >= next_ns_; }

  // True if a last reading is worth taking before the file is closed. False: too little time has
  // gone since the last one.
  bool due_at_end(std::uint64_t now_ns) const {
    return every_ns_ != 0 &&
           (last_.at_ns == kNotRead || now_ns - last_.at_ns >= kShortestMetricsNs);
  }

  // Returns how long the thread may sleep.
  std::uint32_t sleep_ms(std::uint64_t now_ns) const {
    const std::uint64_t ms = next_ns_ <= now_ns ? 1 : (next_ns_ - now_ns) / 1'000'000 + 1;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(ms, UINT32_MAX));
  }

  // Calls f(counter, at_ns) for what is known in `window`. 0: no window is open, and nothing is
  // read. Growth between two windows is in neither.
  template <typename F>
  void read(std::uint64_t now_ns, std::uint32_t window, F&& f) {
    if (due(now_ns)) next_ns_ += ((now_ns - next_ns_) / every_ns_ + 1) * every_ns_;
    const bool goes_on = window == window_;
    window_ = window;
    if (window == 0) return;
    const ProcessMetrics before = last_;
    sources_.read(last_);
    each_lane(goes_on ? &before : nullptr, last_, "", [&](const Counter& c) { f(c, last_.at_ns); });
  }

  void after_fork() { sources_.close(); }

 private:
  std::uint64_t next_ns_ = UINT64_MAX;  // never
  std::uint64_t every_ns_ = 0;
  std::uint32_t window_ = 0;
  ProcessMetrics last_;
  Sources sources_;
};

}  // namespace tprof::metrics
