// The training passes of a rank: what it called before, in and behind each backward pass of a step.
#pragma once

#include <cstdint>
#include <vector>

#include "stats/rest_calls.h"
#include "steps/found.h"

namespace tprof::stats {

using Places = std::vector<std::uint32_t>;  // of calls in RestCalls::calls, in their order

// `before` and `late` are of the thread that calls backward(), which stands there until autograd's
// threads are through with it; where these called nothing, `late` is where gradients are reduced.
struct Pass {
  Places before{};    // the forward pass, and what was called ahead of it
  Places backward{};  // by autograd's threads
  Places late{};      // gradients that are reduced directly behind it (DeepSpeed's last ones)
};

struct StepPasses {
  std::int64_t step = 0;
  std::vector<Pass> passes{};
  Places behind{};  // the last of them
};

struct Passes {
  std::vector<StepPasses> steps{};  // those with a backward pass
  std::uint64_t least_gradient = 0;

  // A reduction that is not one of norms and flags. What is reduced before the first backward pass
  // of a step may be of that size too.
  bool gradient(const CallKind& kind) const;
};

// `by_time`: the calls as places in RestCalls::calls.
Passes passes_of(const RestCalls& rank, const Places& by_time,
                 const std::vector<steps::Interval>& steps);

}  // namespace tprof::stats
