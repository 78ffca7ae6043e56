// Converts moments that the program tells to the clock of records.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/session/session.h"

namespace tprof::user {

// `realtime_ns` is on CLOCK_REALTIME; 0 means now, and is returned as it is. The result is not
// before the trace begins, and not later than now.
inline std::uint64_t monotonic(std::uint64_t realtime_ns) {
  if (realtime_ns == 0) return 0;
  const Head& head = session::mapping().head();
  // Readers go from one clock to the other in the same way, so that a difference stays what it is.
  if (realtime_ns <= head.base_real_ns) return head.base_mono_ns;
  return std::min(head.base_mono_ns + (realtime_ns - head.base_real_ns), now_ns());
}

}  // namespace tprof::user
