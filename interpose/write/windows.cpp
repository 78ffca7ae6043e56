#include "interpose/write/windows.h"

#include <sys/prctl.h>

#include <atomic>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/lock.h"
#include "interpose/device/timing.h"
#include "interpose/real/driver.h"
#include "interpose/session/session.h"

namespace tprof::windows {
namespace {

Lock g_lock{LockOrder::windows};  // for windows opened by hand
std::atomic<bool> g_switched_on{false};

// Profilers are switched on a separate thread, since starting one may take seconds.
std::atomic<std::uint32_t> g_edges{0};  // futex: odd while profilers should be on
std::atomic<bool> g_has_thread{false};

void* switch_profilers(void*) {
  prctl(PR_SET_NAME, "tprof-profiler");
  constexpr std::uint32_t kLookAgainMs = 1000;
  for (std::uint32_t done = 0;;) {
    const std::uint32_t edges = g_edges.load(std::memory_order_acquire);
    if (edges % 2 != done % 2) driver::switch_profilers(edges % 2 != 0);
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

// Set by TPROF_SCHEDULE, until `tprof ctl` takes over from `off` or `ctl`.
std::atomic<WindowsBy> g_by{WindowsBy::off};
bool g_taken_over = false;  // used by the writer's thread
WindowsBy by() {
  return g_by.load(std::memory_order_relaxed);
}

void set_open(bool on) {
  const LockGuard guard(g_lock);
  Window* last = last_window(table());
  if (on && !is_open(last)) open_window(table(), now_ns(), -1);
  if (!on && is_open(last)) last->to_ns.store(now_ns(), std::memory_order_release);
  device::set_window(on);
}

// From here on windows by `schedule` decide about lines and times.
void take_over(WindowsBy by, std::string_view schedule) {
  if (g_by.exchange(by) == WindowsBy::off) {
    open_window(table(), session::mapping().head().base_mono_ns, -1);
    last_window(table())->to_ns.store(now_ns(), std::memory_order_release);
  }
  set_schedule(table(), schedule);
  table().state.store(0, std::memory_order_relaxed);
  g_taken_over = true;
}

bool is_ours() {
  return g_taken_over || by() == WindowsBy::off || by() == WindowsBy::control;
}

}  // namespace

void begin() {
  g_by.store(session::config().schedule.by, std::memory_order_relaxed);
  if (by() == WindowsBy::off) return;
  device::set_window(false);
  if (by() == WindowsBy::profiler) return set_open(g_switched_on.load(std::memory_order_acquire));
  if (by() == WindowsBy::control) return;
  if (session::config().cuda_profiler) {
    g_has_thread.store(start_background_thread(switch_profilers), std::memory_order_relaxed);
  }
}

void follow() {
  if (by() != WindowsBy::steps) return;
  const std::uint32_t state = table().state.load(std::memory_order_relaxed);
  device::set_window((state & kWindowTimed) != 0);
  switch_profilers_to((state & kWindowOpen) != 0);
}

bool watch_steps() {
  return by() == WindowsBy::steps &&
         (table().state.load(std::memory_order_relaxed) & kWindowsOver) == 0;
}

Obeyed open_by_hand() {
  if (by() == WindowsBy::off) return Obeyed::already;
  if (!is_ours()) return Obeyed::schedule;
  if (by() != WindowsBy::control) take_over(WindowsBy::control, kByControl);
  if (is_open(last_window(table()))) return Obeyed::already;
  set_open(true);
  return Obeyed::done;
}

Obeyed close_by_hand() {
  if (!is_ours()) return Obeyed::schedule;
  const bool was_on = by() == WindowsBy::off || is_open(last_window(table()));
  if (by() != WindowsBy::control) take_over(WindowsBy::control, kByControl);
  set_open(false);
  return was_on ? Obeyed::done : Obeyed::already;
}

Obeyed open_for_steps(std::uint32_t steps, std::uint64_t first) {
  if (!is_ours()) return Obeyed::schedule;
  if (session::config().step == std::string_view("off")) return Obeyed::no_steps;
  char schedule[kMaxSchedule + 1];
  (FixedText(schedule) << "repeat=1,active=").number(steps);
  set_open(false);
  table().asked_first.store(first, std::memory_order_relaxed);
  table().too_late.store(0, std::memory_order_relaxed);
  table().asked_ns.store(now_ns(), std::memory_order_relaxed);
  take_over(WindowsBy::steps, schedule);
  return Obeyed::done;
}

void end() {
  if (by() == WindowsBy::off || g_taken_over) return;
  const Windows& w = table();
  const bool by_steps = by() == WindowsBy::steps;
  if (by_steps ? w.steps.load(std::memory_order_relaxed) != 0 : w.opened.load() != 0) return;
  say(by_steps ? "TPROF_SCHEDULE: no step was seen, so no event has a line; set TPROF_STEP to what "
                 "marks one"
      : by() == WindowsBy::profiler
          ? "TPROF_SCHEDULE=profiler: cudaProfilerStart was not called, so no event has a line"
          : "TPROF_SCHEDULE=ctl: `tprof ctl start` was not called, so no event has a line");
}

void after_fork() {
  g_has_thread.store(false, std::memory_order_relaxed);
  g_edges.store(0, std::memory_order_relaxed);
  g_taken_over = false;
}

void switched(bool on) {
  g_switched_on.store(on, std::memory_order_release);
  if (session::started() && !session::closed() && by() == WindowsBy::profiler) set_open(on);
}

}  // namespace tprof::windows
