// The training passes of a rank: what it called before, in and after each backward pass of a step.
#pragma once

#include <cstdint>
#include <vector>

#include "stats/rank_calls.h"
#include "steps/found.h"

namespace tprof::stats {

// `ahead`, `late` and `behind` are calls of the thread that calls backward(), which blocks there
// until autograd's threads have finished.
struct Pass {
  std::int64_t step = 0;
  std::size_t number = 0;  // in the step
  Places ahead{};          // the forward pass, and what was called ahead of it
  Places backward{};       // by autograd's threads
  Places late{};           // gradients that are reduced directly after it (DeepSpeed's last ones)
  bool last = false;       // of the step
  Places behind{};         // what follows the last one
};

struct Passes {
  std::vector<Pass> all{};
  std::uint64_t least_gradient = 0;

  // True for a reduction that is too large for norms and flags. Reductions before the first
  // backward pass of a step may be of that size too.
  bool gradient(const CallKind& kind) const;
};

Passes passes_of(const RankCalls& rank, const std::vector<steps::Interval>& steps);

}  // namespace tprof::stats
