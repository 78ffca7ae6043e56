// The ways of timing calls on the device (TPROF_TIMING). A new one is a row here, and a file
// device/by_NAME.cpp that does it (device/mode.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"

namespace tprof {

// The calls that a timer needs from the process's first one on.
enum class Watched : std::uint8_t { nothing, launches, cupti };

// X(name, whether "name:N" times one call of N, what is watched)
#define TPROF_TIMERS(X)              \
  X(host, false, Watched::nothing)   \
  X(events, true, Watched::launches) \
  X(cupti, false, Watched::cupti)

enum class Timer : std::uint8_t {
#define X(name, ...) name,
  TPROF_TIMERS(X)
#undef X
};
struct TimerInfo {
  std::string_view name;
  bool shared;
  Watched watched;
};
inline constexpr TimerInfo kTimers[] = {
#define X(name, ...) {#name, __VA_ARGS__},
    TPROF_TIMERS(X)
#undef X
};

struct Timing {
  Timer by = Timer::host;
  std::uint32_t every = 1;  // one of every so many calls
};

inline bool parse_timing(std::string_view v, Timing& timing) {
  timing = {};
  const std::size_t colon = v.find(':');
  const std::string_view name(v.data(), colon == v.npos ? v.size() : colon);
  for (const TimerInfo& timer : kTimers) {
    if (name != timer.name) continue;
    timing.by = static_cast<Timer>(&timer - kTimers);
    if (name.size() == v.size()) return true;
    return timer.shared && parse_number(without_prefix(v, colon + 1), timing.every) &&
           timing.every != 0;
  }
  return false;
}

}  // namespace tprof
