// Opens and closes windows at the steps that TPROF_SCHEDULE names.
#pragma once

#include <cstdint>
#include <span>

#include "interpose/format/windows.h"
#include "interpose/write/step_intervals.h"

namespace tprof {

class StepWindows {
 public:
  explicit StepWindows(Windows& windows) : windows_(windows) { adopt(); }

  // Reads TPROF_SCHEDULE, or its change by `tprof ctl`. Returns false if it is unchanged.
  bool adopt();

  bool wanted() const { return schedule_.by == WindowsBy::steps; }

  // `steps` have no line yet, and are in order of time. A window continues between its steps.
  // `marked`: the program marks its steps.
  void follow(std::span<const StepInterval> steps, bool marked);

 private:
  static constexpr std::uint64_t kNone = UINT64_MAX;
  // The time per step is averaged over at least this time, if possible: marks may come in bursts,
  // as a function that each training step calls several times.
  static constexpr std::uint64_t kMeasuredNs = 1'000'000'000;

  // The schedule's first step has already begun: there is no window.
  void miss();

  void tell_begun(std::span<const StepInterval> steps, bool marked);

  // While the schedule's first step is not known, it may be the next one.
  Action action_of_step(std::uint64_t ordinal) const;
  Action action_of_next() const { return action_of_step(next_); }
  // Publishes the state. Between two steps, `now` is for the next one.
  void tell(Action now);

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
