// The phase of each call of a rank, by all that tells it.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stats/rank_calls.h"
#include "steps/found.h"

namespace tprof::stats {

// The basis of a phase: the program's NVTX ranges, the names of threads that only load data, or the
// order of calls within a step. none: it is what is left.
enum class ToldBy { range, thread, order, none };
inline constexpr std::string_view kToldByNames[] = {"range", "thread", "order", "none"};

// Returns the phase of each of the rank's calls, and what told it: the innermost range first.
// Nullopt if not known, or if the call is an autograd thread's own. `steps` null: the order tells
// nothing. A thread that calls backward() blocks there until autograd's threads have finished, so
// the order of that thread's calls tells:
//  - The collectives before a backward pass of the step are forward.
//  - The gradients that are reduced directly after one belong to it.
//  - The collectives after the last one are the optimizer's, as far as most steps begin with the
//    same ones there.
//  - The batches that are copied to the device before the first collective of a forward pass are
//    load. If such copies are made after it too, none is told: parameters are kept on the host.
// A pass that holds more than most steps' is not told, since an evaluation is in it. Nor is what
// follows the last backward pass, from the next batch or forward collective on.
std::vector<std::optional<std::pair<StepPhase, ToldBy>>> told_phases(
    const RankCalls& rank, const std::vector<steps::Interval>* steps);

}  // namespace tprof::stats
