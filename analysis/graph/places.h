// Finds out how much of a step's work each call needs, and how much does not wait for its end.
//
// A call comes to a device no earlier than the work is done that it needs, so what a rank had done
// then is a bound. It is no more than that where the call waited for something else: for its host,
// or for another call on its stream. All ranks and steps that make the same calls need the same
// share of their work. So where one is seen to wait for its work, the others need as much.
//
// Likewise, work does not wait for the end of a call if half of them were computing what is behind
// it by then.
#pragma once

#include <cstdint>
#include <vector>

#include "run/run.h"

namespace tprof::graph {

inline constexpr std::int64_t kGrainNs = 10'000;  // the ends of work are known so well
inline constexpr std::int64_t kNoWork = INT64_MIN;

// By rank and row.
struct Needs {
  // The rank had done what the call needs, no later than it came; kNoWork: it is not seen to need
  // any.
  std::vector<std::vector<std::int64_t>> done_ns{};
  // Nobody is seen to wait for its work there: hosts called late. All that was done by then is
  // taken to be needed, since a host that waited for its device called no earlier.
  std::vector<std::vector<bool>> assumed{};
  // Until then the rank did nothing for which the call has to have ended; kNoWork: nobody knows.
  std::vector<std::vector<std::int64_t>> without_ns{};
};

// `could_come_ns`: by rank and row, when its queues were free.
Needs needs_of(const run::Run& run, const std::vector<std::vector<std::int64_t>>& could_come_ns);

}  // namespace tprof::graph
