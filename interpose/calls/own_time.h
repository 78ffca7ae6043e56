// The library's own time inside of calls, which is taken of one call in 61 on each thread: what it
// adds to the program's.
#pragma once

#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/record/thread.h"

namespace tprof {

// Returns when the call came; 0: its time is not taken. The call has counted itself.
inline std::uint64_t take_own_time(Thread& t) {
  if (t.until_own_time != 0) return 0;
  t.until_own_time = Thread::kOwnTimeEvery;
  return now_ns();
}

// `call_ns`: how long the real call took.
[[gnu::cold, gnu::noinline]] inline void add_own_time(std::uint64_t came_ns,
                                                      std::uint64_t call_ns) {
  Head& head = session::mapping().head();
  head.own_ns.fetch_add(now_ns() - came_ns - call_ns, std::memory_order_relaxed);
  head.own_timed_calls.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tprof
