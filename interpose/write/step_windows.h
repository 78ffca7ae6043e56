// Opens and closes windows at the steps that TPROF_SCHEDULE names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "interpose/format/windows.h"
#include "interpose/write/step_intervals.h"

namespace tprof {

class StepWindows {
 public:
  explicit StepWindows(Windows& windows) : windows_(windows) { adopt(); }

  // Reads TPROF_SCHEDULE, or its change by `tprof ctl`. Returns false if it is unchanged.
  bool adopt() {
    const std::string_view now = bounded_text(windows_.schedule);
    const std::uint64_t asked_ns = windows_.asked_ns.load(std::memory_order_relaxed);
    if (now == std::string_view(known_) && asked_ns == asked_ns_) return false;
    copy_text(known_, now);
    asked_ns_ = asked_ns;
    const std::uint64_t asked_first = windows_.asked_first.load(std::memory_order_relaxed);
    first_ = asked_ns == 0 ? 0 : asked_first == kNextStep ? kNone : asked_first;
    if (first_ != 0 && first_ < windows_.begun.count.load(std::memory_order_relaxed)) miss();
    schedule_ = {};
    parse_schedule(now, schedule_);
    tell(action_of_next());
    return true;
  }

  bool wanted() const { return schedule_.by == WindowsBy::steps; }

  // `steps` have no line yet, and are in order of time. A window continues between its steps.
  // `marked`: the program marks its steps.
  void follow(std::span<const StepInterval> steps, bool marked) {
    tell_begun(steps, marked);
    if (!wanted()) return;
    Action now = action_of_next();
    for (const StepInterval& i : steps) {
      if (i.ordinal < next_) continue;
      if (first_ == kNone && i.from_ns >= asked_ns_) first_ = i.ordinal;
      if (i.ordinal == first_ && i.from_ns < asked_ns_) miss();
      now = action_of_step(i.ordinal);
      Window* last = last_window(windows_);
      if (now == Action::record || now == Action::record_and_save) {
        if (!is_open(last)) {
          open_window(windows_, i.from_ns, i.step);
          last = last_window(windows_);
        }
        last->last_step.store(i.step, std::memory_order_relaxed);
      }
      if (i.to_ns == StepInterval::kOpen) break;
      if (now == Action::record_and_save) last->to_ns.store(i.to_ns, std::memory_order_release);
      next_ = i.ordinal + 1;
      now = action_of_next();
    }
    windows_.steps.store(next_, std::memory_order_relaxed);
    tell(now);
  }

 private:
  static constexpr std::uint64_t kNone = UINT64_MAX;
  // The time per step is averaged over at least this time, if possible: marks may come in bursts,
  // as a function that each training step calls several times.
  static constexpr std::uint64_t kMeasuredNs = 1'000'000'000;

  // The schedule's first step has already begun: there is no window.
  void miss() {
    schedule_ = {};
    schedule_.by = WindowsBy::control;
    windows_.too_late.store(1, std::memory_order_relaxed);
    windows_.state.store(0, std::memory_order_relaxed);
  }

  void tell_begun(std::span<const StepInterval> steps, bool marked) {
    StepsBegun& begun = windows_.begun;
    begun.marked.store(marked ? 1 : 0, std::memory_order_relaxed);
    const std::uint64_t before = begun.count.load(std::memory_order_relaxed);
    if (steps.empty()) return;
    const StepInterval& last = steps.back();
    if (last.ordinal + 1 <= before) return;
    if (measured_from_.from_ns == 0) measured_from_ = steps.front();
    const std::uint64_t ns = last.from_ns - std::min(last.from_ns, measured_from_.from_ns);
    const std::uint64_t n = last.ordinal - measured_from_.ordinal;
    if (n != 0 && (ns >= kMeasuredNs || !measured_)) {
      begun.took_ns.store(ns / n, std::memory_order_relaxed);
    }
    if (ns >= kMeasuredNs) {
      measured_from_ = last;
      measured_ = true;
    }
    begun.last_ns.store(last.from_ns, std::memory_order_relaxed);
    begun.count.store(last.ordinal + 1, std::memory_order_release);
  }

  // While the schedule's first step is not known, it may be the next one.
  Action action_of_step(std::uint64_t ordinal) const {
    if (!wanted()) return Action::none;
    if (first_ == kNone) return Action::warmup;
    return ordinal >= first_ ? action_of(schedule_, ordinal - first_) : Action::none;
  }
  Action action_of_next() const { return action_of_step(next_); }
  // Publishes the state. Between two steps, `now` is for the next one.
  void tell(Action now) {
    if (!wanted()) return;
    const std::uint32_t open = is_open(last_window(windows_)) ? kWindowOpen : 0;
    const std::uint32_t timed = now != Action::none ? kWindowTimed : 0;
    const bool ended = first_ != kNone && next_ >= first_ && is_over(schedule_, next_ - first_);
    const std::uint32_t over = ended && open == 0 ? kWindowsOver : 0;
    windows_.state.store(open | timed | over, std::memory_order_relaxed);
  }

  Windows& windows_;
  char known_[kMaxSchedule + 1] = {};
  Schedule schedule_;
  std::uint64_t asked_ns_ = 0;
  std::uint64_t first_ = 0;  // ordinal of the schedule's first step
  std::uint64_t next_ = 0;   // ordinal of the first step that has not ended
  StepInterval measured_from_;
  bool measured_ = false;  // over kMeasuredNs
};

}  // namespace tprof
