// The phases that the order of a rank's calls within a step tells.
#pragma once

#include <optional>
#include <vector>

#include "stats/rest_calls.h"
#include "steps/found.h"

namespace tprof::stats {

// Of each of the rank's calls; nothing: not told, or an autograd thread's own. `by_time`: the calls
// as places in RestCalls::calls. A thread that calls backward() stands there until autograd's
// threads are through with it, so of that thread
//  - the collectives before a backward pass of the step are forward,
//  - the gradients that are reduced directly behind one are of it (what is reduced before the first
//    backward pass of a step is no gradient),
//  - the collectives behind the last one are the optimizer's, as far as most steps begin with the
//    same ones there,
//  - the batches that are copied to the device before the first collective of a forward pass are
//    load; nothing is where such copies are made behind it too (parameters are kept on the host).
// A pass that holds more than most steps' (an evaluation is in it) is not told, nor is what stands
// behind the last backward pass from the next batch or forward collective on.
std::vector<std::optional<StepPhase>> phases_by_order(const RestCalls& rank,
                                                      const std::vector<std::uint32_t>& by_time,
                                                      const std::vector<steps::Interval>& steps);

}  // namespace tprof::stats
