// Finds out how much of a step's work each call needs, and how much work needs no call's end.
//
// A call reaches the device no earlier than the work it needs is done. So the work done by then is
// an upper bound, and only a bound if the call waited for something else: for its host, or for
// another call on its stream. All ranks and steps that make the same calls need the same share of
// their work. So if one of them is seen to wait for its work, the others need as much. If none is,
// the bounds of all are compared; micro-batches of different lengths are first made equally long.
//
// Likewise, work does not need a call's end if half of the ranks and steps computed it before that
// end.
#pragma once

#include <cstdint>
#include <vector>

#include "run/run.h"

namespace tprof::graph {

inline constexpr std::int64_t kGrainNs = 10'000;  // how exactly ends of work are known
inline constexpr std::int64_t kNoWork = INT64_MIN;

// By rank and row.
struct Needs {
  // When the work that the call needs was done, no later than it came; kNoWork: it is not seen to
  // need any.
  std::vector<std::vector<std::int64_t>> done_ns{};
  // True if no rank is seen to wait for its work there, since the hosts called late. All work done
  // by then is assumed to be needed: a host that waited for its device called no earlier.
  std::vector<std::vector<bool>> assumed{};
  // Until when the rank's work did not need the call's end; kNoWork: unknown.
  std::vector<std::vector<std::int64_t>> without_ns{};
};

// `could_come_ns`: by rank and row, when the row's queues were free.
Needs needs_of(const run::Run& run, const std::vector<std::vector<std::int64_t>>& could_come_ns);

}  // namespace tprof::graph
