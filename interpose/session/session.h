// The life of tracing in one process: lazy start at the first call that counts, fork, exit (other
// ends: leaving.h).
// The only state that rooms share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interpose/session/config.h"
#include "interpose/session/mapping.h"

namespace tprof::session {

// What the kernel wipes in a forked child (MADV_WIPEONFORK), which pthread_atfork's handlers would
// miss after a bare clone(): such a child must not write into its parent's files. A page of its
// own: x86-64 has pages of 4 KiB, other machines of up to 64 KiB.
#if defined(__x86_64__)
inline constexpr std::size_t kWipedBytes = 4096;
#else
inline constexpr std::size_t kWipedBytes = 65536;
#endif
struct alignas(kWipedBytes) Wiped {
  std::atomic<std::uint32_t> number;  // of the session; 0: none has begun in this process
  std::atomic<std::uint32_t> begun;   // a thread is giving it its number
};
extern Wiped g_wiped;

// Tracing is off: disabled, or something of ours failed.
inline constexpr std::uint32_t kOff = UINT32_MAX;

// The number of the session, which a fork and exit() change: what a thread has cached from another
// session is void.
inline std::uint32_t number() {
  return g_wiped.number.load(std::memory_order_relaxed);
}

// Gives the session its number, no more: nothing is there yet that only calls that count need.
void begin();

// Starts the session of this process if it has none yet: reads the settings, creates the files,
// starts the writer. False: tracing is off. About 1 ms, once; other threads wait for it.
[[gnu::cold]] bool start();
bool started();

Mapping& mapping();
const Config& config();

// Fewer records than half a ring are free: the writer should not sleep on.
void wake_writer();

// The exit handlers have closed the file. Calls may still come: those of static destructors, each
// of which has the file closed once more, behind it; and those of threads that exit() does not
// stop. The latter are not recorded: the process may end in the middle of closing for them.
bool closed();
bool in_exiting_thread();
[[gnu::cold]] void late_call();

// A communicator was made, so whatever else moves data may have been loaded by now.
[[gnu::cold]] void look_around();

}  // namespace tprof::session
