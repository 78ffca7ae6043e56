#include "interpose/session/windows.h"

#include <sys/prctl.h>

#include <atomic>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/lock.h"
#include "interpose/driver/profiler.h"
#include "interpose/session/session.h"
#include "interpose/timing/timing.h"

namespace tprof::windows {
namespace {

Lock g_lock;  // of the windows that the program opens
std::atomic<bool> g_switched_on{false};

// A thread of its own: a profiler that starts may keep its caller for seconds.
std::atomic<std::uint32_t> g_edges{0};  // futex: odd while profilers are to be on
std::atomic<bool> g_has_thread{false};

void* switch_profilers(void*) {
  prctl(PR_SET_NAME, "tprof-profiler");
  constexpr std::uint32_t kLookAgainMs = 1000;
  for (std::uint32_t done = 0;;) {
    const std::uint32_t edges = g_edges.load(std::memory_order_acquire);
    if (edges % 2 != done % 2) profiler_driver::set(edges % 2 != 0);
    done = edges;
    futex_wait(g_edges, edges, kLookAgainMs);
  }
}

void switch_profilers_to(bool on) {
  if (!g_has_thread.load(std::memory_order_relaxed)) return;
  const std::uint32_t edges = g_edges.load(std::memory_order_relaxed);
  if ((edges % 2 != 0) == on) return;
  g_edges.store(edges + 1, std::memory_order_release);
  futex_wake(g_edges);
}

Windows& table() {
  return session::mapping().head().windows;
}
WindowsBy by() {
  return session::config().windows_by;
}

void set_open(bool on) {
  const LockGuard guard(g_lock);
  Window* last = last_window(table());
  if (on && !is_open(last)) open_window(table(), now_ns(), -1);
  if (!on && is_open(last)) last->to_ns.store(now_ns(), std::memory_order_release);
  timing::set_window(on);
}

}  // namespace

void begin() {
  if (by() == WindowsBy::off) return;
  timing::set_window(false);
  if (by() == WindowsBy::profiler) return set_open(g_switched_on.load(std::memory_order_acquire));
  if (session::config().cuda_profiler) {
    g_has_thread.store(start_background_thread(switch_profilers), std::memory_order_relaxed);
  }
}

void follow() {
  if (by() != WindowsBy::steps) return;
  const std::uint32_t state = table().state.load(std::memory_order_relaxed);
  timing::set_window((state & kWindowTimed) != 0);
  switch_profilers_to((state & kWindowOpen) != 0);
}

void end() {
  if (by() == WindowsBy::off) return;
  const Windows& w = table();
  if (by() == WindowsBy::profiler) {
    if (w.opened.load(std::memory_order_acquire) == 0) {
      say("TPROF_SCHEDULE=profiler: cudaProfilerStart was not called, so no event has a line");
    }
  } else if (w.steps.load(std::memory_order_relaxed) == 0) {
    say("TPROF_SCHEDULE: no step was seen, so no event has a line; TPROF_STEP says what marks one");
  }
}

void after_fork() {
  g_has_thread.store(false, std::memory_order_relaxed);
  g_edges.store(0, std::memory_order_relaxed);
}

void switched(bool on) {
  g_switched_on.store(on, std::memory_order_release);
  if (session::started() && !session::closed() && by() == WindowsBy::profiler) set_open(on);
}

}  // namespace tprof::windows
