// Moments that the program tells, on the clock of records.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/session/session.h"

namespace tprof::user {

// `realtime_ns`: CLOCK_REALTIME, 0: now (and 0 is the answer). Not before the trace begins, not
// later than now.
inline std::uint64_t monotonic(std::uint64_t realtime_ns) {
  if (realtime_ns == 0) return 0;
  const Head& head = session::mapping().head();
  // As readers go from one clock to the other, so that a difference stays what it is.
  if (realtime_ns <= head.base_real_ns) return head.base_mono_ns;
  return std::min(head.base_mono_ns + (realtime_ns - head.base_real_ns), now_ns());
}

}  // namespace tprof::user
