// The training passes of a rank: what it called before, in and after each backward pass of a step.
#pragma once

#include <cstdint>
#include <vector>

#include "stats/rest_calls.h"
#include "steps/found.h"

namespace tprof::stats {

using Places = std::vector<std::uint32_t>;  // indices into RestCalls::calls, in their order

// `before` and `late` are calls of the thread that calls backward(), which blocks there until
// autograd's threads have finished. If these called nothing, gradients are reduced in `late`.
struct Pass {
  Places before{};    // the forward pass, and what was called ahead of it
  Places backward{};  // by autograd's threads
  Places late{};      // gradients that are reduced directly after it (DeepSpeed's last ones)
};

struct StepPasses {
  std::int64_t step = 0;
  std::vector<Pass> passes{};
  Places behind{};  // after the last pass
};

struct Passes {
  std::vector<StepPasses> steps{};  // those with a backward pass
  std::uint64_t least_gradient = 0;

  // True for a reduction that is too large for norms and flags. Reductions before the first
  // backward pass of a step may be of that size too.
  bool gradient(const CallKind& kind) const;
};

// `by_time` holds indices into RestCalls::calls, in the order of time.
Passes passes_of(const RestCalls& rank, const Places& by_time,
                 const std::vector<steps::Interval>& steps);

}  // namespace tprof::stats
