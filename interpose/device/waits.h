// For how long the program's threads waited for a device, between two calls that were timed: in
// cudaStreamSynchronize and its like, and in launches behind a full queue. A host that did not wait
// could not have been faster.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/base/clock.h"

namespace tprof::device {

inline constinit std::atomic<std::uint64_t> g_waited_ns{0};

// Less is what a call takes that waits for nothing.
inline constexpr std::uint64_t kShortestWaitNs = 10'000;

inline void add_wait(std::uint64_t ns) {
  if (ns != 0) g_waited_ns.fetch_add(ns, std::memory_order_relaxed);
}
inline std::uint64_t take_waits() {
  if (g_waited_ns.load(std::memory_order_relaxed) == 0) return 0;
  return g_waited_ns.exchange(0, std::memory_order_relaxed);
}

}  // namespace tprof::device
