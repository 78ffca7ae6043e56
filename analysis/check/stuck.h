// Finds calls at which devices stand though all ranks have come to them.
#pragma once

#include <cstdint>
#include <vector>

#include "check/waits.h"

namespace tprof::check {

// The devices of all ranks that such a call takes stand at it or behind it, and none waits there
// for another.
struct Stuck {
  const Operation* call = nullptr;
  const Communicator* communicator = nullptr;
  Processes who{};
  Processes idle{};  // of these, whose devices have not begun it; empty: all have, or none has
  std::int64_t called_ns = 0;  // CLOCK_REALTIME
};

// By when they were called.
std::vector<Stuck> stuck_calls(const Case& c, const Waits& waits);

}  // namespace tprof::check
