// How long calls take on the device, read by a thread of its own and added to the ledger. By events
// (TPROF_TIMING=events): a pair of them on the call's stream, one before and one behind it. By
// CUPTI (TPROF_TIMING=cupti): its records of what the call had the device do.
//
// The thread that makes the call waits for nothing, allocates nothing and takes no lock: a call for
// which no pair is free is not timed, and counted as that. (But the first in a context, which makes
// the first pairs: 1 ms.) Two records cost it about 5 us, as others have measured.
// The reader is not the writer's thread: on a device that hangs the driver's answers can hang too,
// and the trace has to say so.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/format/control.h"
#include "interpose/format/ledger.h"
#include "interpose/format/settings.h"
#include "interpose/thread/extras.h"
#include "interpose/thread/timed_call.h"

namespace tprof::timing {

inline constinit std::atomic<bool>& g_on = g_extras.timing;
inline bool on() {
  return g_on.load(std::memory_order_relaxed);
}

// Before the real call. `number`: TPROF_TIMING=events:N chooses one call of N by it. That is the
// `seq` of a collective, so that all its ranks choose the same ones.
inline constexpr std::uint64_t kNoNumber = UINT64_MAX;  // any that no other call has
[[gnu::cold]] TimedCall start(CUstream stream, std::uint64_t number);

// What has one time together: calls of one row of the ledger. Most often it is one call.
struct Calls {
  LedgerKey::Words key;
  std::uint64_t calls;
  std::uint64_t count;    // sum of the API's
  std::uint64_t seq;      // of the first
  std::uint64_t host_ns;  // when that began,
  std::uint32_t tid;      // on this thread
  bool computes = false;  // a copy in a stream that computes
};
// Behind it: it was accepted; `in_progress`: its work is still being enqueued.
[[gnu::cold]] void stop(const TimedCall& timed, const Calls& of, bool in_progress);
// Instead: it was refused, and counts nowhere.
[[gnu::cold]] void drop(const TimedCall& timed);
// Instead, of a call of NCCL's that is not timed: the next one on its communicator comes after it.
[[gnu::cold]] void pass_by(CUstream stream, const Calls& of);

// For the rest of this room: a pair of which the first event is recorded, and the second. False:
// the driver refused, and the pair is gone.
[[gnu::cold]] TimedCall begin_pair(CUstream stream);
[[gnu::cold]] bool end_pair(Pair& pair);
// A mark in a stream. captures: nothing may be recorded there. lost: no event was free.
struct Mark;
enum class Marked : std::uint8_t { made, captures, lost };
[[gnu::cold]] Marked put_into(CUstream stream, const Mark& mark);
std::uint64_t next_number();                 // of calls and marks, from 1
void lose(TimingLost why, const Calls& of);  // but launches, which no row counts
// The device is gone, or was reset: what it was to tell is not known. Nothing else ends by that.
void give_up();

// Calls are timed only while a window is open (TPROF_SCHEDULE). It is, where nobody says otherwise.
void set_window(bool open);

[[gnu::cold]] bool by_events();

// With the session.
void begin(const Timing& timing);
// `tprof ctl timing`: host, or events. What has begun is timed to its end.
Obeyed change(const Timing& timing);
// Where work of all streams goes through one queue (Megatron's setting), timing events would order
// what was not ordered: NCCL's kernels and the program's would no longer overlap.
bool would_order();
// Before the first call: by CUPTI calls are timed from when that is there. A second at most, since
// somebody may be waiting for the caller's locks who has what CUPTI needs.
void settle_in();
// The program, or a tool in it, asks for CUPTI, which it gets: calls are not timed any more.
void make_way();

// At its end: times what the devices have finished, for at most `timeout_ms`, and nothing more.
void end(std::uint32_t timeout_ms);
void go_on();       // the process has not ended after all
void after_fork();  // in the child: neither events nor thread are its own

}  // namespace tprof::timing
