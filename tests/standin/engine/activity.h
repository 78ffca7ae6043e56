// Tells a profiler about device work: which API call it came from, and when it ran. libcupti sets
// the observer; without one, none of this costs anything.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/stream.h"

namespace standin::activity {

struct Observer {
  // Called on the calling thread when an API call puts work into a stream. Returns the call's
  // number, from 1.
  uint32_t (*called)();
  // Called on the stream's thread when the work of such a call has run, before anybody who waits
  // for it is woken. Times are CLOCK_MONOTONIC.
  void (*ran)(const Op& op, const CUstream_st& stream, int64_t began_ns, int64_t ended_ns);
};
extern std::atomic<const Observer*> observer;

inline uint32_t called() {
  const Observer* o = observer.load(std::memory_order_acquire);
  return o == nullptr ? 0 : o->called();
}
inline void ran(const Op& op, const CUstream_st& stream, int64_t began_ns, int64_t ended_ns) {
  if (op.correlation == 0) return;
  if (const Observer* o = observer.load(std::memory_order_acquire)) {
    o->ran(op, stream, began_ns, ended_ns);
  }
}

}  // namespace standin::activity
