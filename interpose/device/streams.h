// Follows what keeps the program's streams busy, from its calls. A stream computes from the first
// launch of a kernel or graph after a wait until its next wait. At each of these places the stream
// gets a mark, which is one event; exposure.h turns marks into times.
//
// Threads of the program wait here only for another thread in the same stream, for a few
// microseconds. A place that can't be marked counts as unseen and is reported. Budget of a launch
// between marks: 110 ns. A stream gets a mark every millisecond, and after one launch of 48. It is
// queried (cuStreamQuery) every millisecond, and after long gaps.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tprof::device {
struct Mark;
}

namespace tprof::device::streams {

// True if launches and waits are followed now: TPROF_TIMING=events, in an open window.
bool on();

// Call these around a call that enqueues work of the program, unless the stream is capturing.
enum class Work : std::uint8_t { kernel, copy };
[[gnu::cold]] void launches(cudaStream_t stream, Work work = Work::kernel);
[[gnu::cold]] void launched(cudaStream_t stream);

// Returns an id that is unique in the process. A default stream has one per device.
std::uint64_t id_of(cudaStream_t stream);

// True if kernels were launched on the stream in the last 10 s.
[[gnu::cold]] bool computes(cudaStream_t stream);

// Call this before a call that makes the stream wait, or that is not computation: the stream's work
// ends here.
[[gnu::cold]] void waits(cudaStream_t stream);
bool is_legacy(cudaStream_t stream);
// Call this before a call in which the thread waits: streams may run dry meanwhile.
[[gnu::cold]] void host_waits();
// Call this after a call that records an event of the program: a place that matters to the program
// gets a mark.
[[gnu::cold]] void recorded(cudaStream_t stream);
// Call this before a call on another stream than the thread's last launch: it may not return to
// that one soon.
[[gnu::cold]] void turns_away();

// Call this before the stream's handle becomes invalid, and close its gate.
[[gnu::cold]] void destroying(cudaStream_t stream);

// Call this when a window opens, or timing is switched on: earlier work is unknown.
void begin_epoch();
void after_fork();
// A call that should have been followed came before tracing started, or within another call.
void unseen();

// Puts a mark into a stream (by_events.cpp). captures: the stream captures, so no mark may be
// recorded. lost: no event was free, or the driver refused.
enum class Marked : std::uint8_t { made, captures, lost };
Marked put_into(cudaStream_t stream, const Mark& mark);

// For the reader. True if no mark is being made: later marks have later times than a now_ns() read
// before this call.
bool at_rest();
bool no_room();  // there were more streams than can be followed

}  // namespace tprof::device::streams
