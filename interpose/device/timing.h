// Measures how long calls take on the device. A separate thread reads the times and adds them to
// the ledger. With TPROF_TIMING=events, a pair of events is put into the call's stream, one before
// and one after the call. With TPROF_TIMING=cupti, CUPTI records the call's work on the device.
//
// The calling thread does not wait, allocate or take a lock. If no pair is free, the call is not
// timed, and counts as such. (Exception: the first call in a context makes the first pairs, which
// takes 1 ms.) Recording two events takes the call about 5 us, as others have measured. The reader
// is not the writer's thread: if a device hangs, calls of the driver can hang, too, and the trace
// has to report that.
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

// The thread that times calls. Only this thread waits for devices.
namespace tprof::device::own_thread {

// `read` is called repeatedly, and returns after how many milliseconds to call it again. `ending`:
// nothing more will come, and what is not known now is lost.
bool begin(std::uint32_t (*read)(bool ending));
void wake();
// Makes the thread read, and waits until it has; the last time is with `ending`.
void read_now(std::uint32_t timeout_ms);
void last_read(std::uint32_t timeout_ms);

}  // namespace tprof::device::own_thread

namespace tprof {

inline CUstream stream_of(const Record& r) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a record keeps the handle as a number
  return reinterpret_cast<CUstream>(r.stream);
}

// Called if device::on(), before the real call. `r` has everything except the outcome.
[[gnu::cold, gnu::noinline]] void start_timing(Thread& t, const Record& r, std::uint8_t function);
// Called after it, timed or not.
[[gnu::cold, gnu::noinline]] void stop_timing(Thread& t, const Record& r, LedgerKey::Words key,
                                              bool ok);

}  // namespace tprof

namespace tprof::device {

// Times the program's scopes on the device, if they have a stream: a pair of events is put there at
// the scope's beginning and end (TPROF_TIMING=events).
struct Pair;

// Null: not timed (not asked for, no window, sampled out, no pair, the stream captures).
[[gnu::cold]] Pair* begin_scope(CUstream stream);
[[gnu::cold]] void end_scope(Pair& pair, LedgerKey::Words key);
// Waits until the ledger has the times of all closed scopes. Returns false on a timeout.
bool read_scopes(std::uint32_t timeout_ms);

// How long the program's threads waited for a device between two timed calls: in
// cudaStreamSynchronize and the like, and in launches to a full queue. If a host did not wait, a
// faster device would not have helped it.
inline constinit std::atomic<std::uint64_t> g_waited_ns{0};

// Shorter times are those of calls that do not wait.
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

// Call this before the real call. TPROF_TIMING=events:N chooses one call of N by `number`: a
// collective's `seq`, so that all ranks choose the same calls.
inline constexpr std::uint64_t kNoNumber = UINT64_MAX;  // takes a new number
[[gnu::cold]] TimedCall start(CUstream stream, std::uint64_t number);

// Call this after the real call if it was accepted, timed or not. `in_progress`: its work is still
// being enqueued.
[[gnu::cold]] void stop(const TimedCall& timed, CUstream stream, const Calls& of, bool in_progress);
// Call this instead of stop() if the call was refused, so that it does not count.
[[gnu::cold]] void drop(const TimedCall& timed);

// True if times are taken between two points of a stream (device/mode.h).
[[gnu::cold]] bool in_streams();

// Calls are timed only while a window is open (TPROF_SCHEDULE). It is open at first.
void set_window(bool open);

// Starts timing with the session. Prints a message instead if the mode would disturb the program.
void begin(const Timing& timing);
// Executes `tprof ctl timing`: host or events. Calls that have begun are still timed.
Obeyed change(const Timing& timing);
// Waits before the first call until CUPTI is ready, since calls are timed only from then on; at
// most a second, since a thread that CUPTI needs may be waiting for the caller's locks.
void settle_in();
// Gives up CUPTI for the program, or a tool in it: calls are not timed any more.
void make_way();

// At the process's end, reads finished times for at most `timeout_ms`. Nothing is timed after that.
void end(std::uint32_t timeout_ms);
void after_fork();  // in the child: neither events nor thread are its own

}  // namespace tprof::device
