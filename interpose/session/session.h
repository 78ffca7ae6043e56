// The state of tracing in this process, the only state that the folders share.
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

// Tracing is off: disabled, or failed to start.
inline constexpr std::uint32_t kOff = UINT32_MAX;

// The number of the session, which a fork and exit() change: values that threads cached in another
// session are invalid.
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

// True if the exit handlers have closed the file. Calls may still come, from static destructors and
// from threads that exit() does not stop. After each call of a static destructor the file is closed
// once more. Calls of such threads are not recorded: the process may end while the file is being
// closed.
inline bool closed() {
  return g_state.closed.load(std::memory_order_acquire);
}
inline bool in_exiting_thread() {
  return g_state.exiting_thread.load(std::memory_order_relaxed) == syscall(SYS_gettid);
}

// These change the state. life/ defines them for the folders below it.

// Only gives the session its number; start() does the rest for calls that count.
[[gnu::cold]] void begin_once();
inline void begin() {
  if (number() == 0) begin_once();
}

// Starts the session if there is none yet: reads the settings, creates the files, starts the
// writer. Returns false if tracing is off. About 1 ms, once; other threads wait for it.
[[gnu::cold]] bool start();

// Called when less than half of a ring is free: the writer should not sleep on.
void wake_writer();

// Closes the file once more after a call that came when exit() had closed it.
[[gnu::cold]] void late_call();

}  // namespace tprof::session
