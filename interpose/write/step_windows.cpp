#include "interpose/write/step_windows.h"

#include <algorithm>

namespace tprof {

bool StepWindows::adopt() {
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

void StepWindows::follow(std::span<const StepInterval> steps, bool marked) {
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

void StepWindows::miss() {
  schedule_ = {};
  schedule_.by = WindowsBy::control;
  windows_.too_late.store(1, std::memory_order_relaxed);
  windows_.state.store(0, std::memory_order_relaxed);
}

void StepWindows::tell_begun(std::span<const StepInterval> steps, bool marked) {
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

Action StepWindows::action_of_step(std::uint64_t ordinal) const {
  if (!wanted()) return Action::none;
  if (first_ == kNone) return Action::warmup;
  return ordinal >= first_ ? action_of(schedule_, ordinal - first_) : Action::none;
}

void StepWindows::tell(Action now) {
  if (!wanted()) return;
  const std::uint32_t open = is_open(last_window(windows_)) ? kWindowOpen : 0;
  const std::uint32_t timed = now != Action::none ? kWindowTimed : 0;
  const bool ended = first_ != kNone && next_ >= first_ && is_over(schedule_, next_ - first_);
  const std::uint32_t over = ended && open == 0 ? kWindowsOver : 0;
  windows_.state.store(open | timed | over, std::memory_order_relaxed);
}

}  // namespace tprof
