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

  Processes who{};  // empty: there is none, so who waits does so for a device
  std::vector<Place> places{};
  // Those that stand elsewhere than most of them, or have a part in each of several messages; all,
  // if nothing tells them from the others.
  Processes odd{};
};

// Returns ranks that all wait for each other, and for nobody else, in the order of `all`. At least
// one rank has to wait.
Deadlock deadlock_of(const Waits& waits, const Processes& all);

}  // namespace tprof::check
