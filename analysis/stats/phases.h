// Tells in which part of a training step calls were made, as far as the ledgers know it.
#pragma once

#include <string_view>

#include "stats/totals.h"

namespace tprof::stats {

// backward: made by an autograd thread of PyTorch, so it includes activation recomputation. rest:
// made by another thread of a process that has such calls: forward, optimizer, loading, setup, and
// what a framework does there after the backward pass (DeepSpeed's last gradients). unknown: calls
// of a process that has none of these, of graph launches, and of threads beyond those that have a
// ledger of their own.
enum class Phase { backward, rest, unknown };
inline constexpr std::string_view kPhaseNames[] = {"backward", "rest", "unknown"};
inline constexpr std::size_t kPhaseCount = std::size(kPhaseNames);

using Phases = std::array<Buckets, kPhaseCount>;

void add_phases(Phases& phases, const read::Rows& rows);  // of one process

}  // namespace tprof::stats
