// The requests that `tprof ctl` makes of a running process, and its answers. This is the only part
// of the mapped file that is written from outside.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"

namespace tprof {

enum class Command : std::uint32_t {
  start,   // writes event lines and device times from now on
  stop,    // writes neither from now on
  window,  // writes both for N whole steps, from the next that begins; then neither. "3@120": from
           // the 120th step
  dump,    // writes what was recorded so far to the rank file, with its ledger
  reset,   // tprof_totals counts from here
  timing,  // changes TPROF_TIMING from now on
};
inline constexpr std::string_view kCommandNames[] = {"start", "stop",  "window",
                                                     "dump",  "reset", "timing"};
inline constexpr std::size_t kCommandCount = 6;

enum class Obeyed : std::uint32_t {
  done,
  already,   // the process was in that state before
  schedule,  // TPROF_SCHEDULE decides that
  no_lines,  // this process writes no lines: TPROF_EVENTS=off, or TPROF_RANKS leaves it out
  no_steps,  // TPROF_STEP=off
  no_timer,  // a running process can only switch between `host` and `events`
  ordered,   // timing events would prevent overlap: CUDA_DEVICE_MAX_CONNECTIONS=1
  failed,    // the timing thread could not be made
  unknown,   // no such command, or an invalid argument
  late,      // the window's first step had already begun
};
inline constexpr std::string_view kObeyedNames[] = {"done",     "already",  "schedule", "no_lines",
                                                    "no_steps", "no_timer", "ordered",  "failed",
                                                    "unknown",  "late"};
inline constexpr std::size_t kObeyedCount = 10;

// Parses "3" (3 steps; `from` is 0) or "3@120" (3 steps from the 120th on, counted from 1). Returns
// false for any other text.
inline bool parse_window(std::string_view text, std::uint32_t& steps, std::uint64_t& from) {
  const std::size_t at = std::min(text.find('@'), text.size());
  from = 0;
  if (!parse_number(prefix(text, at), steps) || steps == 0) return false;
  return at == text.size() || (parse_number(without_prefix(text, at + 1), from) && from != 0);
}

struct Control {
  // Written by one requester at a time, which holds a flock(2) of the file.
  Command command;
  char argument[28];                 // window: N or N@STEP; timing: a value of TPROF_TIMING
  std::atomic<std::uint32_t> asked;  // incremented by each request, after the fields above
  // Written by the process, once the rank file has all lines of what was recorded before.
  std::atomic<std::uint32_t> answered;  // the value of `asked` that `result` answers
  Obeyed result;
};

}  // namespace tprof
