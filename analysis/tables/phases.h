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

// As far as the ledgers know it. backward: made by an autograd thread of PyTorch, so it includes
// activation recomputation. rest: made by another thread of a process that has such calls: forward,
// optimizer, loading, setup, and what a framework does there after the backward pass (DeepSpeed's
// last gradients). unknown: calls of a process that has none of these, of graph launches, and of
// threads beyond those that have a ledger of their own.
enum class Phase { backward, rest, unknown };
inline constexpr std::string_view kPhaseNames[] = {"backward", "rest", "unknown"};
inline constexpr std::size_t kPhaseCount = std::size(kPhaseNames);

using Phases = std::array<Buckets, kPhaseCount>;

void add_phases(Phases& phases, const read::Rows& rows);  // of one process

// The basis of a phase: the program's NVTX ranges, the names of threads that only load data, or the
// order of calls within a step. none: it is what is left.
enum class ToldBy { range, thread, order, none };
inline constexpr std::string_view kToldByNames[] = {"range", "thread", "order", "none"};

// Tells the phases of a rank's calls, once its last line was read. For those that no autograd
// thread made, the innermost range tells first, then the thread, then the order within a step: a
// thread that calls backward() blocks there until autograd's threads have finished.
//  - The collectives before a backward pass of the step are forward.
//  - The gradients that are reduced directly after one belong to it.
//  - The collectives after the last one are the optimizer's, as far as most steps begin with the
//    same ones there.
//  - The batches that are copied to the device before the first collective of a forward pass are
//    load. If such copies are made after it too, none is told: parameters are kept on the host.
// A pass that holds more than most steps' is not told, since an evaluation is in it. Nor is what
// follows the last backward pass, from the next batch or forward collective on.
struct RankPhases : RankCalls {
  RankPhases(const read::Process& of, const steps::Found& found);
  void end();

  // Returns that of a call that began then.
  StepPhase at(std::int64_t tid, std::int64_t ts_ns) const;

  bool known = false;    // the names of the threads are
  bool ordered = false;  // the order tells: every call has a line on a thread with a name
  std::map<std::pair<StepPhase, ToldBy>, Buckets> told{};  // without autograd's own calls
  // By the thread's number: from which moment on its calls are of a phase.
  std::map<std::int64_t, std::map<std::int64_t, StepPhase>> changes{};

 private:
  const std::vector<steps::Interval>* steps_;  // null: not known
};

// The calls that no autograd thread made.
struct Rest {
  // They add up to the ledgers' calls.
  std::map<std::pair<StepPhase, ToldBy>, Buckets> told{};
  std::vector<const read::Process*> unordered{};  // ranks whose order tells nothing
};

// Calls in files that can't be read are `other`.
Rest rest_of(const run::Lines& lines, const steps::Found& found);

}  // namespace tprof::tables
