// Times the program's scopes on the device, if it named their stream. A pair of events goes there,
// one where the scope begins and one where it ends (TPROF_TIMING=events).
#pragma once

#include <cuda.h>

#include "interpose/format/ledger.h"

namespace tprof::timing {

struct Pair;

// Null: it is not timed (not asked for, no window, sampled out, no pair, a stream that captures).
[[gnu::cold]] Pair* begin_scope(CUstream stream);
[[gnu::cold]] void end_scope(Pair& pair, LedgerKey::Words key);

}  // namespace tprof::timing
