// Finds calls that all ranks made and no device ends.
#pragma once

#include <cstdint>
#include <vector>

#include "check/waits.h"

namespace tprof::check {

// All ranks of the call made it, their devices have come no further, and no rank waits for another.
struct Stuck {
  const Operation* call = nullptr;
  const Communicator* communicator = nullptr;
  Processes who{};
  Processes idle{};  // ranks whose devices have not begun it; empty: all have, or none has
  std::int64_t called_ns = 0;  // CLOCK_REALTIME
};

// Returns them in the order in which they were called.
std::vector<Stuck> stuck_calls(const Case& c, const Waits& waits);

}  // namespace tprof::check
