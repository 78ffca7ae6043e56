// What a profiler is told of device work: which call of the API it came from, and when it ran.
// libcupti sets the observer; without one nothing of this costs anything.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/stream.h"

namespace standin::activity {

struct Observer {
  // A call of the API, on the calling thread, that puts work into a stream: its number, from 1.
  uint32_t (*called)();
  // Work of such a call has run, on the stream's thread; CLOCK_MONOTONIC. Nobody who waits for the
  // work has been woken yet.
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
