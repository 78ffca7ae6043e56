// The lines of windows: tprof_window.
#pragma once

#include <cstdint>

#include "interpose/lines/lines.h"

namespace tprof {

// Those behind `done` that have ended; with `last` also one that has not: nobody will end it.
inline void window_lines(Text& out, const View& view, std::uint32_t& done, bool last) {
  const Windows& w = view.head().windows;
  const std::uint32_t opened = w.opened.load(std::memory_order_acquire);
  if (opened - done > kMaxWindows) done = opened - kMaxWindows;  // of a damaged file
  for (; done != opened; ++done) {
    const Window& window = w.window[done % kMaxWindows];
    const std::uint64_t from_ns = window.from_ns.load(std::memory_order_acquire);
    const std::uint64_t to_ns = window.to_ns.load(std::memory_order_acquire);
    if (to_ns == kNotYet && !last) return;
    open_line(out, view, "tprof_window", 'M', 0) << ",\"args\":{\"ts\":";
    timestamp(out, view, from_ns);
    if (to_ns != kNotYet) (out << ",\"dur\":").micros(to_ns - from_ns);
    const std::int64_t first = window.first_step.load(std::memory_order_relaxed);
    if (first >= 0) {
      out << ",\"first_step\":" << first
          << ",\"last_step\":" << window.last_step.load(std::memory_order_relaxed);
    }
    out << "}},\n";
  }
}

}  // namespace tprof
