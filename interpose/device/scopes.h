// Times the program's scopes on the device, if it named their stream. A pair of events goes there,
// one where the scope begins and one where it ends (TPROF_TIMING=events).
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/format/ledger.h"

namespace tprof::device {

struct Pair;

// Null: it is not timed (not asked for, no window, sampled out, no pair, a stream that captures).
[[gnu::cold]] Pair* begin_scope(CUstream stream);
[[gnu::cold]] void end_scope(Pair& pair, LedgerKey::Words key);
// Waits until the ledger has the times of all scopes that have ended. False: not within that time.
bool read_scopes(std::uint32_t timeout_ms);

}  // namespace tprof::device
