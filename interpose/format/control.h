// What `tprof ctl` asks of a running process, and what that answers: the one part of the mapped
// file that is written from outside.
#pragma once

#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tprof {

enum class Command : std::uint32_t {
  start,   // event lines and device times, from now on
  stop,    // none any more
  window,  // both for so many whole steps, the first of which begins next; then neither. "3@120":
           // it is the 120th
  dump,    // what was recorded so far is in the rank file, with its ledger
  reset,   // tprof_totals counts from here
  timing,  // TPROF_TIMING, from now on
};
inline constexpr std::string_view kCommandNames[] = {"start", "stop",  "window",
                                                     "dump",  "reset", "timing"};
inline constexpr std::size_t kCommandCount = 6;

enum class Obeyed : std::uint32_t {
  done,
  already,   // it was so before
  schedule,  // TPROF_SCHEDULE says when
  no_lines,  // this process writes none: TPROF_EVENTS=off, or TPROF_RANKS leaves it out
  no_steps,  // TPROF_STEP=off
  no_timer,  // calls can be timed by events or not at all, once the process runs
  ordered,   // timing events would order what is not: CUDA_DEVICE_MAX_CONNECTIONS=1
  failed,    // the timing thread could not be made
  unknown,   // no such command, or none with such an argument
  late,      // the step that the window was to begin with had begun
};
inline constexpr std::string_view kObeyedNames[] = {"done",     "already",  "schedule", "no_lines",
                                                    "no_steps", "no_timer", "ordered",  "failed",
                                                    "unknown",  "late"};
inline constexpr std::size_t kObeyedCount = 10;

// "3" or "3@120": so many steps from that one on, counted from 1. False: neither.
inline bool parse_window(std::string_view text, std::uint32_t& steps, std::uint64_t& from) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, steps);
  from = 0;
  if (error != std::errc() || steps == 0) return false;
  if (rest == end) return true;
  if (*rest != '@') return false;
  const auto [behind, wrong] = std::from_chars(rest + 1, end, from);
  return wrong == std::errc() && behind == end && from != 0;
}

struct Control {
  // By one who asks at a time, who holds a flock(2) of the file.
  Command command;
  char argument[28];                 // of window N or N@STEP, of timing a value of TPROF_TIMING
  std::atomic<std::uint32_t> asked;  // one more with each, once the above is there
  // By the process, when all lines of what was recorded before are in the rank file.
  std::atomic<std::uint32_t> answered;  // `asked`, of what `result` is of
  Obeyed result;
};

}  // namespace tprof
