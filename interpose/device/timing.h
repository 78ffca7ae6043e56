// Measures how long calls take on the device. A thread of its own reads the times and adds them to
// the ledger. With TPROF_TIMING=events, a pair of events goes into the call's stream, one before
// the call and one after it. With TPROF_TIMING=cupti, CUPTI records what the call had the device
// do.
//
// The thread that makes the call waits for nothing, allocates nothing and takes no lock. A call for
// which no pair is free is not timed, and counts as such. (The first call in a context is the
// exception: it makes the first pairs, which takes 1 ms.) Two records cost the call about 5 us, as
// others have measured. The reader is not the writer's thread: if a device hangs, the driver's
// answers can hang too, and the trace has to say so.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/format/control.h"
#include "interpose/format/ledger.h"
#include "interpose/format/settings.h"
#include "interpose/record/switches.h"
#include "interpose/record/thread.h"

// The thread that times calls. Whatever waits for a device, or may wait, waits here.
namespace tprof::device::own_thread {

// `read` is called again and again, and returns after how many milliseconds it wants to be called
// again. `ending`: nothing more will come, and what is not known now is lost.
bool begin(std::uint32_t (*read)(bool ending));
void wake();
// Has the thread read, for the last time with `ending`, and waits until it has.
void read_now(std::uint32_t timeout_ms);
void last_read(std::uint32_t timeout_ms);

}  // namespace tprof::device::own_thread

namespace tprof {

// Called if device::on(), before the real call, of which `r` has all but the outcome.
[[gnu::cold, gnu::noinline]] void start_timing(Thread& t, const Record& r, std::uint8_t function);
// Called after it, whether or not it is being timed.
[[gnu::cold, gnu::noinline]] void stop_timing(Thread& t, const Record& r, LedgerKey::Words key,
                                              bool ok);

}  // namespace tprof

namespace tprof::device {

// Times the program's scopes on the device, if it named their stream. A pair of events goes there,
// one where the scope begins and one where it ends (TPROF_TIMING=events).
struct Pair;

// Null: it is not timed (not asked for, no window, sampled out, no pair, a stream that captures).
[[gnu::cold]] Pair* begin_scope(CUstream stream);
[[gnu::cold]] void end_scope(Pair& pair, LedgerKey::Words key);
// Waits until the ledger has the times of all scopes that have ended. False: not within that time.
bool read_scopes(std::uint32_t timeout_ms);

// For how long the program's threads waited for a device, between two calls that were timed: in
// cudaStreamSynchronize and its like, and in launches behind a full queue. A host that did not wait
// could not have been faster.
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

inline constinit std::atomic<bool>& g_on = g_switches.timing;
inline bool on() {
  return g_on.load(std::memory_order_relaxed);
}

// Call this before the real call. TPROF_TIMING=events:N chooses one call of N by `number`. For a
// collective that is its `seq`, so that all its ranks choose the same calls.
inline constexpr std::uint64_t kNoNumber = UINT64_MAX;  // take one that no other call has
[[gnu::cold]] TimedCall start(CUstream stream, std::uint64_t number);

// Call this after the real call, if it was accepted, whether or not it is timed. `in_progress`: its
// work is still being enqueued.
[[gnu::cold]] void stop(const TimedCall& timed, CUstream stream, const Calls& of, bool in_progress);
// Call this instead of stop() if the call was refused, so that it counts nowhere.
[[gnu::cold]] void drop(const TimedCall& timed);

// True if times are taken between two points of a stream (device/mode.h).
[[gnu::cold]] bool in_streams();

// Calls are timed only while a window is open (TPROF_SCHEDULE). One is open unless somebody closes
// it.
void set_window(bool open);

// Starts timing with the session. Says so if the mode asked for would disturb the program.
void begin(const Timing& timing);
// Carries out `tprof ctl timing`: host, or events. Calls that have begun are timed to their end.
Obeyed change(const Timing& timing);
// Before the first call, waits until CUPTI is ready, since calls are timed only from then on. It
// waits a second at most: a thread that holds what CUPTI needs may be waiting for the caller's
// locks.
void settle_in();
// Gives CUPTI up to the program, or a tool in it, that asks for it: calls are not timed any more.
void make_way();

// At the process's end, times what the devices have finished, for at most `timeout_ms`. Nothing is
// timed after that.
void end(std::uint32_t timeout_ms);
void go_on();       // the process has not ended after all
void after_fork();  // in the child: neither events nor thread are its own

}  // namespace tprof::device
