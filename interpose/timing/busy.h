// Follows what the program's streams are busy with, by the calls that it makes: a stream
// computes from the first kernel or graph launched on it after a wait to the next wait. Marks, an
// event each, stand there in the stream; exposure.h makes times of them.
//
// The program's threads wait for nothing here but another thread at the same stream, a few
// microseconds; what can't be marked is unseen, and said. Budget of a launch between two marks:
// 110 ns; a stream that the host feeds late is asked whether it is empty (cuStreamQuery) at most
// every 50 us.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tprof::timing::busy {

// Whether launches and waits are followed now: TPROF_TIMING=events, in an open window.
bool on();

// Around a call that puts work of the program into a stream. Where the stream captures, neither.
enum class Work : std::uint8_t { kernel, copy };
[[gnu::cold]] void launches(cudaStream_t stream, Work work = Work::kernel);
[[gnu::cold]] void launched(cudaStream_t stream);

// A number that no other stream of the process has: a default stream is one for each device.
std::uint64_t id_of(cudaStream_t stream);

// Whether kernels were launched on the stream in the last 10 s.
[[gnu::cold]] bool computes(cudaStream_t stream);

// Before a call that makes a stream wait, or that is no computation: what is in the stream up to
// here is what it was busy with.
[[gnu::cold]] void waits(cudaStream_t stream);
bool is_legacy(cudaStream_t stream);
// Before a call in which a thread waits: the streams may run dry meanwhile.
[[gnu::cold]] void host_waits();
// Behind a call that records an event of the program's: it wants to know when the stream comes
// there, so that we should as well.
[[gnu::cold]] void recorded(cudaStream_t stream);
// Before a call of the thread on another stream than it launched on last: it may not come back to
// that for long.
[[gnu::cold]] void turns_away();

// Before the stream's handle is gone.
[[gnu::cold]] void destroying(cudaStream_t stream);

// Times are taken in open windows only. What is there when one opens, or when timing is switched
// on, is not known.
void set_window(bool open);
void begin_epoch();
void after_fork();
// The program calls what is followed, before tracing has started or within another call.
void unseen();

// For the reader. No mark is being made: what is made after this comes later than now_ns() before.
bool at_rest();
bool no_room();  // there were more streams than can be followed

}  // namespace tprof::timing::busy
