// The calls of one rank from its lines, with what their threads and the ranges around them tell of
// their phase, and the training passes that they make up.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "read/events.h"
#include "steps/found.h"

namespace tprof::tables {

// Derives the phase of a training step from the names of the NVTX ranges around calls.

// load: batches of data. other: nothing tells the phase.
enum class StepPhase { load, forward, backward, optimizer, other };
inline constexpr std::string_view kStepPhaseNames[] = {"load", "forward", "backward", "optimizer",
                                                       "other"};

// Knows the names that people and frameworks use: "forward", "backward pass", "optimizer step",
// "DataLoader", "Optimizer.step#AdamW.step" (PyTorch), "DeepSpeedEngine.forward" (DeepSpeed),
// "forward-compute", "batch-generator" (Megatron). Nullopt if the name has no phase, or several.
std::optional<StepPhase> phase_of_name(std::string_view name);

// Calls that are alike.
struct CallKind {
  Bucket bucket = Bucket::ALLGATHER;
  std::int64_t comm = -1;  // -1: a copy
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  text::Kept dtype{};

  auto operator<=>(const CallKind&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The thread that calls backward() has an order of its collectives, and of no others.
bool collective(const CallKind& kind);

using Places = std::vector<std::uint32_t>;  // indices into RankCalls::calls, in their order

struct RankCalls {
  explicit RankCalls(const read::Process& of) : rank(&of) {}
  static constexpr std::size_t kMost = std::size_t{1} << 22;

  struct Thread {
    std::string name{};  // empty: not known
    bool autograd = false;
    Places calls{};
  };
  struct Call {
    std::int64_t ts_ns = 0;
    std::int64_t dur_ns = 0;
    std::uint64_t seq = 0;
    std::int64_t site = 0;  // 0: not known
    const CallKind* kind = nullptr;
    const Thread* thread = nullptr;
    std::optional<StepPhase> range{};  // by the innermost range whose name tells it
  };

  void call(const read::Event& e);
  void range(const read::Range& r);
  void thread(const read::ThreadName& t);

  const CallKind& kind(std::uint32_t call) const { return *calls[call].kind; }
  read::Amounts amounts(std::uint32_t call) const;
  Places since(std::int64_t thread, std::int64_t ts_ns) const;  // calls of a thread, last first
  Places within(const read::Range& range) const;                // of those that are pushed
  void let_go();  // of the calls, when all is told that they tell

  const read::Process* rank;
  std::set<CallKind> kinds{};
  std::vector<Call> calls{};
  std::map<std::int64_t, Thread> threads{};
  bool all = true;  // false: there were more than kMost
};

// The calls of a rank before, in and after a backward pass of a step. `ahead`, `late` and `behind`
// are calls of the thread that calls backward(), which blocks there until autograd's threads have
// finished.
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

}  // namespace tprof::tables
