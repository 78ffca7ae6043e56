// The state of tracing in one process, the only one that rooms share.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "interpose/base/fork.h"
#include "interpose/session/config.h"
#include "interpose/session/mapping.h"

namespace tprof::session {

struct State {
  Mapping mapping;
  Config config;
  std::atomic<bool> started;
  std::atomic<bool> closed;
  std::atomic<long> exiting_thread;
};
inline constinit State g_state{};

// Tracing is off: disabled, or something of ours failed.
inline constexpr std::uint32_t kOff = UINT32_MAX;

// The number of the session, which a fork and exit() change: what a thread has cached from another
// session is void.
inline std::uint32_t number() {
  return g_wiped_by_fork.session.load(std::memory_order_relaxed);
}
inline bool started() {
  return g_state.started.load(std::memory_order_acquire) && number() != 0;
}
inline Mapping& mapping() {
  return g_state.mapping;
}
inline const Config& config() {
  return g_state.config;
}

// The exit handlers have closed the file. Calls may still come: those of static destructors, each
// of which has the file closed once more, behind it; and those of threads that exit() does not
// stop. The latter are not recorded: the process may end in the middle of closing for them.
inline bool closed() {
  return g_state.closed.load(std::memory_order_acquire);
}
inline bool in_exiting_thread() {
  return g_state.exiting_thread.load(std::memory_order_relaxed) == syscall(SYS_gettid);
}

// These change the state, for the rooms below life/, which defines them.

// Gives the session its number, no more: nothing is there yet that only calls that count need.
[[gnu::cold]] void begin_once();
inline void begin() {
  if (number() == 0) begin_once();
}

// Starts the session of this process if it has none yet: reads the settings, creates the files,
// starts the writer. False: tracing is off. About 1 ms, once; other threads wait for it.
[[gnu::cold]] bool start();

// Fewer records than half a ring are free: the writer should not sleep on.
void wake_writer();

// A call after exit() has closed the file: it is closed once more, behind that.
[[gnu::cold]] void late_call();

}  // namespace tprof::session
