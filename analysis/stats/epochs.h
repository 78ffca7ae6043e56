// What one epoch of a process counted: between two calls of tprof_reset, or tprof ctl reset.
#pragma once

#include <cstdint>

#include "read/process.h"

namespace tprof::stats {

// Leaves in the ledger what that epoch added to it, from 0. A longest time that may be of an
// earlier epoch is 0: it is not known. Throws BadInput where the process has no such epoch, or the
// ledger is missing with which it began.
void keep_epoch(read::Process& process, std::int64_t epoch);

}  // namespace tprof::stats
