// The counts of one epoch of a process: between two calls of tprof_reset, or of tprof ctl reset.
#pragma once

#include <cstdint>

#include "read/process.h"

namespace tprof::stats {

// Leaves in the ledger only what that epoch added to it; the first epoch is 0. A longest time that
// may stem from an earlier epoch becomes 0, since it is not known. Throws BadInput if the process
// has no such epoch, or if the ledger with which it began is missing.
void keep_epoch(read::Process& process, std::int64_t epoch);

}  // namespace tprof::stats
