// Windows: the times in which event lines are written and calls are timed on the device
// (TPROF_SCHEDULE). The mapped file holds them, so that a recovery of a killed process decides as
// the process did.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/schedule.h"

namespace tprof {

inline constexpr std::uint64_t kNotYet = UINT64_MAX;

struct Window {
  std::atomic<std::uint64_t> from_ns;  // CLOCK_MONOTONIC
  std::atomic<std::uint64_t> to_ns;    // kNotYet: it is open
  // Numbers of the first and the last step in it, -1: not by steps.
  std::atomic<std::int64_t> first_step;
  std::atomic<std::int64_t> last_step;
};

// Only the last 256 are known. More end within a fifth of a second only if steps take less than a
// millisecond.
inline constexpr std::uint32_t kMaxWindows = 256;

// The current state, for timing calls.
inline constexpr std::uint32_t kWindowTimed = 1;
inline constexpr std::uint32_t kWindowOpen = 2;
inline constexpr std::uint32_t kWindowsOver = 4;  // this schedule has no more windows

// Steps begun so far, known with a short delay. `tprof ctl` uses them to choose a future step for
// all ranks.
struct StepsBegun {
  std::atomic<std::uint64_t> count;
  std::atomic<std::uint64_t> last_ns;  // CLOCK_MONOTONIC, when the last of them began
  std::atomic<std::uint64_t> took_ns;  // from the beginning of one step to the next
  std::atomic<std::uint32_t> marked;   // 1: by the program; 0: each process finds its own
};

inline constexpr std::uint64_t kNextStep = UINT64_MAX;

struct Windows {
  char schedule[kMaxSchedule + 1];    // TPROF_SCHEDULE; "": off
  bool files;                         // TPROF_WINDOW_FILES
  std::atomic<std::uint32_t> opened;  // so far: the last one is window[(opened - 1) % kMaxWindows]
  std::atomic<std::uint32_t> state;   // kWindowTimed and the others
  std::atomic<std::uint64_t> steps;   // seen so far, if windows are by steps
  // CLOCK_MONOTONIC when `tprof ctl` asked for a number of steps: earlier steps do not count. 0:
  // the schedule is TPROF_SCHEDULE's.
  std::atomic<std::uint64_t> asked_ns;
  std::atomic<std::uint64_t> asked_first;  // the schedule's first step, from 0; or kNextStep
  std::atomic<std::uint32_t> too_late;     // the step had already begun when it was requested
  StepsBegun begun;
  Window window[kMaxWindows];
};

// Called by the lines' writer. Readers of a running process only check whether it is empty.
inline void set_schedule(Windows& w, std::string_view schedule) {
  copy_text(w.schedule, schedule);
}

// Single writer, or under a lock.
inline void open_window(Windows& w, std::uint64_t from_ns, std::int64_t step) {
  const std::uint32_t n = w.opened.load(std::memory_order_relaxed);
  Window& window = w.window[n % kMaxWindows];
  window.from_ns.store(kNotYet, std::memory_order_relaxed);  // nothing is in it while it changes
  std::atomic_thread_fence(std::memory_order_release);
  window.to_ns.store(kNotYet, std::memory_order_relaxed);
  window.first_step.store(step, std::memory_order_relaxed);
  window.last_step.store(step, std::memory_order_relaxed);
  window.from_ns.store(from_ns, std::memory_order_release);
  w.opened.store(n + 1, std::memory_order_release);
}
// The last window opened, or null.
inline Window* last_window(Windows& w) {
  const std::uint32_t n = w.opened.load(std::memory_order_acquire);
  return n == 0 ? nullptr : &w.window[(n - 1) % kMaxWindows];
}
inline bool is_open(const Window* w) {
  return w != nullptr && w->to_ns.load(std::memory_order_acquire) == kNotYet;
}

// Returns the window, from 1, in which `ns` lies; 0: none, and so no line. Without a schedule
// everything gets a line, and the result is kAlways.
inline constexpr std::uint32_t kAlways = UINT32_MAX;
inline std::uint32_t window_at(const Windows& w, std::uint64_t ns) {
  if (w.schedule[0] == 0) [[likely]]
    return kAlways;
  const std::uint32_t opened = w.opened.load(std::memory_order_acquire);
  for (std::uint32_t n = opened; n != 0 && opened - n < kMaxWindows; --n) {
    const Window& window = w.window[(n - 1) % kMaxWindows];
    if (ns < window.from_ns.load(std::memory_order_acquire)) continue;
    return ns < window.to_ns.load(std::memory_order_acquire) ? n : 0;
  }
  return 0;
}

// The same for an interval: the first window that overlaps it.
inline std::uint32_t window_in(const Windows& w, std::uint64_t from_ns, std::uint64_t to_ns) {
  std::uint32_t first = window_at(w, from_ns);
  if (first != 0) return first;
  const std::uint32_t opened = w.opened.load(std::memory_order_acquire);
  for (std::uint32_t n = opened; n != 0 && opened - n < kMaxWindows; --n) {
    const std::uint64_t begins = w.window[(n - 1) % kMaxWindows].from_ns.load();
    if (begins < from_ns) break;
    if (begins < to_ns) first = n;
  }
  return first;
}

}  // namespace tprof
