// Tells in which part of a training step calls were made.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "run/lines.h"
#include "steps/found.h"
#include "tables/rank_calls.h"
#include "tables/totals.h"

namespace tprof::tables {

// Phases in the ledgers. backward: called by an autograd thread of PyTorch, including activation
// recomputation. rest: called by other threads of a process with autograd calls: forward,
// optimizer, loading, setup, and what a framework does there after the backward pass (DeepSpeed's
// last gradients). unknown: calls of a process without autograd calls, of graph launches, and of
// threads without their own ledger.
enum class Phase { backward, rest, unknown };
inline constexpr std::string_view kPhaseNames[] = {"backward", "rest", "unknown"};
inline constexpr std::size_t kPhaseCount = std::size(kPhaseNames);

using Phases = std::array<Buckets, kPhaseCount>;

void add_phases(Phases& phases, const read::Rows& rows);  // of one process

// The evidence for a phase: the program's NVTX ranges, names of data-loading threads, or the order
// of calls within a step. none: the remaining calls.
enum class PhaseSource { range, thread, order, none };
inline constexpr std::string_view kPhaseSourceNames[] = {"range", "thread", "order", "none"};

// Finds the phases of a rank's calls after its last line. For calls of other than autograd threads,
// the innermost range decides, then the thread, then the order within a step: a thread that calls
// backward() blocks until autograd's threads have finished.
//  - The collectives before a backward pass of the step are forward.
//  - Gradients that are reduced directly after it belong to it.
//  - The collectives after the last one are the optimizer's, if most steps begin with the same ones
//    there.
//  - Batches copied to the device before the first collective of a forward pass are load, unless
//    there are such copies after it too: then parameters are kept on the host.
// A pass with more calls than in most steps has no phase, since it contains an evaluation. Nor do
// calls after the last backward pass, from the next batch or forward collective on.
struct RankPhases : RankCalls {
  RankPhases(const read::Process& of, const steps::Found& found);
  void end();

  // Returns the phase of a call that began then.
  StepPhase at(std::int64_t tid, std::int64_t ts_ns) const;

  bool known = false;    // the threads' names are known
  bool ordered = false;  // the order can be used: every call has a line on a named thread
  std::map<std::pair<StepPhase, PhaseSource>, Buckets> told{};  // without autograd's calls
  // By thread id: from when on its calls are in a phase.
  std::map<std::int64_t, std::map<std::int64_t, StepPhase>> changes{};

 private:
  const std::vector<steps::Interval>* steps_;  // null: unknown
};

// The calls of other than autograd threads.
struct Rest {
  // These add up to the ledgers' calls.
  std::map<std::pair<StepPhase, PhaseSource>, Buckets> told{};
  std::vector<const read::Process*> unordered{};  // ranks whose order can't be used
};

// Calls in files that can't be read are `other`.
Rest rest_of(const run::Lines& lines, const steps::Found& found);

}  // namespace tprof::tables
