// Finds ranks that wait for each other.
#pragma once

#include <vector>

#include "check/waits.h"

namespace tprof::check {

struct Deadlock {
  struct Place {
    const Missed* on = nullptr;
    Processes who{};
  };

  Processes who{};  // empty: there is no deadlock, so ranks wait for devices
  std::vector<Place> places{};
  // The ranks at the smaller of two places, or the one that takes part in each of several messages;
  // all ranks if none stands out.
  Processes odd{};
};

// Returns ranks that wait for each other and for no other rank, in the order of `all`. At least one
// rank has to wait.
Deadlock deadlock_of(const Waits& waits, const Processes& all);

}  // namespace tprof::check
