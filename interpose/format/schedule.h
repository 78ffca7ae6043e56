// TPROF_SCHEDULE: the steps in which event lines are written and calls are timed on the device. It
// has the parameters, meaning and edge cases of torch.profiler.schedule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"

namespace tprof {

enum class WindowsBy : std::uint8_t {
  off,       // always: the whole run is one window
  steps,     // by the number of the step
  profiler,  // between the program's cudaProfilerStart and cudaProfilerStop
  control,   // between `tprof ctl` start and stop
};

struct Schedule {
  WindowsBy by = WindowsBy::off;
  // In steps, except for `repeat` (cycles, 0: no limit) and `skip_first_wait` (1: the first cycle
  // has no wait).
  std::uint64_t skip_first = 0, wait = 0, warmup = 0, active = 0, repeat = 0, skip_first_wait = 0;
};

inline constexpr std::size_t kMaxSchedule = 127;  // bytes of the setting

// PyTorch's ProfilerAction. `record_and_save`: the last step of a window.
enum class Action : std::uint8_t { none, warmup, record, record_and_save };

// Returns what a schedule by steps does in `step` (from 0), as torch/profiler/profiler.py has it
// (2.11).
constexpr Action action_of(const Schedule& s, std::uint64_t step) {
  if (step < s.skip_first) return Action::none;
  step -= s.skip_first;
  if (s.skip_first_wait != 0) step += s.wait;
  const std::uint64_t cycle = s.wait + s.warmup + s.active;
  if (s.repeat != 0 && step / cycle >= s.repeat) return Action::none;
  const std::uint64_t at = step % cycle;
  if (at < s.wait) return Action::none;
  if (at < s.wait + s.warmup) return Action::warmup;
  return at + 1 < cycle ? Action::record : Action::record_and_save;
}

// True if the schedule's last cycle ended before `step`.
constexpr bool is_over(const Schedule& s, std::uint64_t step) {
  if (s.repeat == 0 || step < s.skip_first) return false;
  const std::uint64_t at = step - s.skip_first + (s.skip_first_wait != 0 ? s.wait : 0);
  return at / (s.wait + s.warmup + s.active) >= s.repeat;
}

inline constexpr std::string_view kByControl = "ctl";

// Parses "off", "profiler", "ctl", or "wait=5,warmup=1,active=3,repeat=2,skip_first=10" in any
// order. Keys that are not given are 0, but `active` is required. Returns false, and changes
// nothing, for any other text.
inline bool parse_schedule(std::string_view text, Schedule& schedule) {
  constexpr struct {
    std::string_view name;
    std::uint64_t Schedule::*value;
  } kKeys[] = {
      {"skip_first", &Schedule::skip_first}, {"wait", &Schedule::wait},
      {"warmup", &Schedule::warmup},         {"active", &Schedule::active},
      {"repeat", &Schedule::repeat},         {"skip_first_wait", &Schedule::skip_first_wait}};
  constexpr std::uint64_t kMost = 1'000'000'000'000;  // so that sums do not overflow
  if (text.size() > kMaxSchedule) return false;
  constexpr struct {
    std::string_view name;
    WindowsBy by;
  } kOthers[] = {
      {"off", WindowsBy::off}, {"profiler", WindowsBy::profiler}, {kByControl, WindowsBy::control}};
  for (const auto& other : kOthers) {
    if (text != other.name) continue;
    schedule = {};
    schedule.by = other.by;
    return true;
  }
  Schedule s;
  s.by = WindowsBy::steps;
  unsigned given = 0;
  const bool well = each_item(text, [&](std::string_view item) {
    const std::size_t equals = std::min(item.find('='), item.size());
    unsigned key = 0;
    while (key < std::size(kKeys) && kKeys[key].name != prefix(item, equals)) ++key;
    if (key == std::size(kKeys) || (given >> key & 1) != 0) return false;
    given |= 1U << key;
    std::uint64_t& value = s.*kKeys[key].value;
    return parse_number(without_prefix(item, equals + 1), value) && value <= kMost;
  });
  if (!well || s.active == 0) return false;
  schedule = s;
  return true;
}

}  // namespace tprof
