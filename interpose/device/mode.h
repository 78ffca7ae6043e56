// The ways of timing calls (TPROF_TIMING). Each is a row of format/setting_values.h and a file
// by_NAME.cpp that defines the Mode NAME_mode. No other code depends on the mode.
#pragma once

#include "interpose/device/timing.h"

namespace tprof::device {

struct Mode {
  // Times are taken between two points of a stream: a synchronous call has only the host's time, a
  // group has a time for each of its streams, and scopes are timed.
  bool in_streams = false;
  bool switches = false;  // `tprof ctl timing` turns it on and off
  // Returns how it would disturb the program; null: not at all.
  const char* (*disturbs)() = [] { return static_cast<const char*>(nullptr); };
  // Called repeatedly on own_thread (timing.h).
  std::uint32_t (*read)(bool ending) = nullptr;  // null: nothing is timed
  // Calls are timed from now on, or not: a window opens or closes, or timing is switched on.
  void (*set_window)(bool open) = [](bool) {};
  // Waits, a second at most, until calls can be timed.
  void (*settle_in)() = [] {};

  // Called before and after the real call; drop() instead of stop() if it was refused.
  TimedCall (*start)(CUstream stream) = [](CUstream) { return TimedCall{}; };
  void (*stop)(const TimedCall& timed, const Calls& of,
               bool in_progress) = [](const TimedCall&, const Calls&, bool) {};
  void (*drop)(const TimedCall& timed) = [](const TimedCall&) {};
  // Called after a call that is not timed.
  void (*pass_by)(CUstream stream, const Calls& of) = [](CUstream, const Calls&) {};
  // True if a call that can't be timed counts as lost.
  bool (*wanted)() = [] { return true; };

  void (*after_fork)() = [] {};  // in the child, even if the mode was not used
};

// For the files of the modes.
const Mode& mode();  // the current one
bool window_open();
// When timing last began (start, switched on, or open window), and when it ended; UINT64_MAX: it
// has not.
struct Followed {
  std::uint64_t since_ns;
  std::uint64_t until_ns;
};
Followed when_followed();
std::uint64_t next_number();                 // of calls and marks, from 1
void lose(TimingLost why, const Calls& of);  // except launches, which have no row
// Ends timing, and nothing else: pending times are lost.
void give_up(const char* why);

}  // namespace tprof::device
