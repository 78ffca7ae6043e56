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

  // Takes over TPROF_SCHEDULE, or what `tprof ctl` made of it since. False: it is the same as
  // before.
  bool adopt();

  bool wanted() const { return schedule_.by == WindowsBy::steps; }

  // `steps` are those without a line yet, in the order of time. A window goes on between its steps.
  // `marked`: the program marks its steps.
  void follow(std::span<const StepInterval> steps, bool marked);

 private:
  static constexpr std::uint64_t kNone = UINT64_MAX;
  // Steps are measured together over at least this time, once there was so much: marks may come in
  // bursts, such as a function that each training step calls several times.
  static constexpr std::uint64_t kMeasuredNs = 1'000'000'000;

  // The step that the schedule was to begin with has begun already: there is no window.
  void miss();

  void tell_begun(std::span<const StepInterval> steps, bool marked);

  // While it is not known with which step the schedule begins, the next one may be it.
  Action action_of_step(std::uint64_t ordinal) const;
  Action action_of_next() const { return action_of_step(next_); }
  // Publishes the state. Between two steps, `now` is what the next one will be.
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
