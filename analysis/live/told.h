// Tells the processes beside a job that it is over: a descriptor is at its end then.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace tprof::live {

// Rounds up, for poll().
inline int milliseconds_in(std::chrono::nanoseconds time) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 1'000'000'000));
}

// Waits for the end, and returns true if it has come.
inline bool at_end(int told, std::chrono::nanoseconds most) {
  pollfd end{told, POLLIN, 0};
  return poll(&end, 1, milliseconds_in(most)) > 0;
}

}  // namespace tprof::live
