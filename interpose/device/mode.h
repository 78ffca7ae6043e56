// The ways of timing calls (TPROF_TIMING). Each is a row of format/timers.h, and a file by_NAME.cpp
// that defines the Mode NAME_mode. Nobody else asks which one is in force.
#pragma once

#include "interpose/device/timing.h"

namespace tprof::device {

struct Mode {
  // Times are taken between two points of a stream: a synchronous call has the host's time only, a
  // group has a time for each of its streams, and scopes have times.
  bool in_streams = false;
  bool switches = false;  // `tprof ctl timing` turns it on and off
  // Tells what it would do to the program that the user doesn't want; null: nothing.
  const char* (*disturbs)() = [] { return static_cast<const char*>(nullptr); };
  // Runs on own_thread again and again (timing.h).
  std::uint32_t (*read)(bool ending) = nullptr;  // null: nothing is timed
  // Timing is switched on in a program that runs already.
  void (*joins)() = [] {};
  void (*set_window)(bool open) = [](bool) {};
  // Waits, a second at most, until calls can be timed.
  void (*settle_in)() = [] {};

  // Called before and after the real call; for one that was refused drop() instead of stop().
  TimedCall (*start)(CUstream stream) = [](CUstream) { return TimedCall{}; };
  void (*stop)(const TimedCall& timed, const Calls& of,
               bool in_progress) = [](const TimedCall&, const Calls&, bool) {};
  void (*drop)(const TimedCall& timed) = [](const TimedCall&) {};
  // Called after a call that is not timed.
  void (*pass_by)(CUstream stream, const Calls& of) = [](CUstream, const Calls&) {};
  // True if a call that can't be timed counts as lost.
  bool (*wanted)() = [] { return true; };

  void (*after_fork)() = [] {};  // in the child, also if the mode was not in force
};

// For the modes' own files.
const Mode& mode();  // the one in force
bool window_open();
// When timing last began, was switched on again or got an open window; and until when it lasted,
// UINT64_MAX: it does.
struct Followed {
  std::uint64_t since_ns;
  std::uint64_t until_ns;
};
Followed when_followed();
std::uint64_t next_number();                 // of calls and marks, from 1
void lose(TimingLost why, const Calls& of);  // except launches, which no row counts
// Ends timing because the device is gone or was reset: times that it was to tell are lost. Nothing
// else ends.
void give_up();

}  // namespace tprof::device
