// Processes that hold several ranks (ncclCommInitAll, one thread a GPU): each rank is a Process of
// its own to everything that comes after reading, with its part of the counts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "read/process.h"

namespace tprof::read {

// The ranks of a process by the contract's rule, in their order; the process itself where it is one
// rank.
std::vector<Process> lanes_of(Process process);

// Of the lanes of a process the one that a call belongs to: its communicator's, or its device's;
// the first where neither tells. `any`: one of them, in its place in the trace.
const Process& lane_of_call(const Process& any, const std::optional<std::int64_t>& comm,
                            const std::optional<std::int64_t>& device);

}  // namespace tprof::read
