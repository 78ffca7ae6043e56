// Bandwidths as nccl-tests defines them (its doc/PERFORMANCE.md), in units of 1e9 bytes a second.
#pragma once

#include <optional>

#include "stats/totals.h"

namespace tprof::stats {

// Bytes over device time. Nothing where a call has no device time: the host's is the time to
// enqueue, and a bandwidth from it would mean nothing.
std::optional<double> algbw(const read::Amounts& amounts);

// algbw times the share of a message that crosses the busiest link. Nothing for copies.
std::optional<double> busbw(const OpKey& key, const read::Amounts& amounts);

}  // namespace tprof::stats
