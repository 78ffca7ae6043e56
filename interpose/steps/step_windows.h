// Opens and closes windows at the steps that TPROF_SCHEDULE names.
#pragma once

#include <cstdint>

#include "interpose/format/windows.h"
#include "interpose/steps/intervals.h"

namespace tprof {

class StepWindows {
 public:
  explicit StepWindows(Windows& windows) : windows_(windows) {
    parse_schedule(bounded_text(windows.schedule), schedule_);
    tell(action_of_next());
  }

  bool wanted() const { return schedule_.by == WindowsBy::steps; }

  // `steps`: those without a line yet, in the order of time. A window goes on between its steps.
  void follow(const StepIntervals& steps) {
    if (!wanted()) return;
    Action now = action_of_next();
    for (const StepInterval& i : steps) {
      if (i.ordinal < next_) continue;
      now = action_of(schedule_, i.ordinal);
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
  Action action_of_next() const { return wanted() ? action_of(schedule_, next_) : Action::none; }
  // Between two steps: what the next one will be.
  void tell(Action now) {
    if (!wanted()) return;
    const std::uint32_t open = is_open(last_window(windows_)) ? kWindowOpen : 0;
    const std::uint32_t timed = now != Action::none ? kWindowTimed : 0;
    windows_.state.store(open | timed, std::memory_order_relaxed);
  }

  Windows& windows_;
  Schedule schedule_;
  std::uint64_t next_ = 0;  // ordinal of the first step that has not ended
};

}  // namespace tprof
