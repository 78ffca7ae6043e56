// Follows what keeps the program's streams busy, from the calls that it makes. A stream computes
// from the first kernel or graph launched on it after a wait until its next wait. A mark, which is
// one event, stands in the stream at each of these places; exposure.h turns marks into times.
//
// The program's threads wait here only for another thread at the same stream, for a few
// microseconds. A place that can't be marked counts as unseen and is reported. Budget of a launch
// between two marks: 110 ns. A stream gets a mark in each millisecond, and behind one launch of 48.
// It is queried (cuStreamQuery) once in a millisecond, and where its host comes back late.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tprof::device {
struct Mark;
}

namespace tprof::device::streams {

// True if launches and waits are followed now: TPROF_TIMING=events, in an open window.
bool on();

// Call these around a call that puts work of the program into a stream, unless the stream is
// capturing.
enum class Work : std::uint8_t { kernel, copy };
[[gnu::cold]] void launches(cudaStream_t stream, Work work = Work::kernel);
[[gnu::cold]] void launched(cudaStream_t stream);

// Returns an id that is unique in the process. A default stream has one for each device.
std::uint64_t id_of(cudaStream_t stream);

// True if kernels were launched on the stream in the last 10 s.
[[gnu::cold]] bool computes(cudaStream_t stream);

// Call this before a call that makes a stream wait or that is no computation: what the stream was
// busy with ends here.
[[gnu::cold]] void waits(cudaStream_t stream);
bool is_legacy(cudaStream_t stream);
// Call this before a call in which a thread waits: the streams may run dry meanwhile.
[[gnu::cold]] void host_waits();
// Call this after a call that records one of the program's events. The program wants to know when
// the stream gets there, so we should know too.
[[gnu::cold]] void recorded(cudaStream_t stream);
// Call this before the thread makes a call on a stream other than the one it launched on last: it
// may not return to that one for long.
[[gnu::cold]] void turns_away();

// Call this before the stream's handle becomes invalid, and close its gate then.
[[gnu::cold]] void destroying(cudaStream_t stream);

// Between these, contexts may go: no thread marks a stream that it makes no call on. Then their
// streams are gone.
void stand_back(bool now);
void all_gone();

// Call this when a window opens, or timing is switched on: work that is already there is not known.
void begin_epoch();
void after_fork();
// The program makes a call that should be followed before tracing has started, or within another
// call.
void unseen();

// Puts a mark into a stream (by_events.cpp). captures: nothing may be recorded there. lost: there
// was no event for it, or the driver refused.
enum class Marked : std::uint8_t { made, captures, lost };
Marked put_into(cudaStream_t stream, const Mark& mark);

// The reader asks these. True if no mark is being made: marks made after this are later than a
// now_ns() read before it.
bool at_rest();
bool no_room();  // there were more streams than can be followed

}  // namespace tprof::device::streams
