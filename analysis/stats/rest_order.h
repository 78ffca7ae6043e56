// Derives phases from the order of a rank's calls within a step.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "stats/rest.h"
#include "stats/rest_calls.h"
#include "steps/found.h"

namespace tprof::stats {

// Returns the phase of each of the rank's calls; nullopt if not known, or if it is an autograd
// thread's own. `by_time` holds indices into RestCalls::calls. A thread that calls backward()
// blocks there until autograd's threads have finished. So the calls of that thread tell:
//  - The collectives before a backward pass of the step are forward.
//  - The gradients that are reduced directly after one belong to it. Reductions before the first
//    backward pass of a step are not gradients.
//  - The collectives after the last one are the optimizer's, as far as most steps begin with the
//    same ones there.
//  - The batches that are copied to the device before the first collective of a forward pass are
//    load. If such copies are made after it too, none is told: parameters are kept on the host.
// A pass that holds more than most steps' is not told, since an evaluation is in it. Nor is what
// follows the last backward pass, from the next batch or forward collective on.
std::vector<std::optional<StepPhase>> phases_by_order(const RestCalls& rank,
                                                      const std::vector<std::uint32_t>& by_time,
                                                      const std::vector<steps::Interval>& steps);

// Returns the phase of each of the rank's calls by all that tells it, the innermost range first,
// and what told it; nullopt as above. `steps` null: the order of the calls tells nothing.
std::vector<std::optional<std::pair<StepPhase, ToldBy>>> told_phases(
    const RestCalls& rank, const std::vector<steps::Interval>* steps);

}  // namespace tprof::stats
