// The calls of one rank from its lines, with what threads and surrounding ranges tell about their
// phase, and the training passes that they form.
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

// load: batches of data. other: unknown.
enum class StepPhase { load, forward, backward, optimizer, other };
inline constexpr std::string_view kStepPhaseNames[] = {"load", "forward", "backward", "optimizer",
                                                       "other"};

// Knows the names that people and frameworks use: "forward", "backward pass", "optimizer step",
// "DataLoader", "Optimizer.step#AdamW.step" (PyTorch), "DeepSpeedEngine.forward" (DeepSpeed),
// "forward-compute", "batch-generator" (Megatron). Nullopt if the name has no phase, or several.
std::optional<StepPhase> phase_of_name(std::string_view name);

// A kind of equal calls.
struct CallKind {
  Bucket bucket = Bucket::ALLGATHER;
  std::int64_t comm = -1;  // -1: a copy
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  text::Kept dtype{};

  auto operator<=>(const CallKind&) const = default;  // NOLINT(modernize-use-nullptr)
};

// True for collectives. These have a fixed order on the thread that calls backward(); other calls
// do not.
bool collective(const CallKind& kind);

using Places = std::vector<std::uint32_t>;  // ascending indices into RankCalls::calls

struct RankCalls {
  explicit RankCalls(const read::Process& of) : rank(&of) {}
  static constexpr std::size_t kMost = std::size_t{1} << 22;

  struct Thread {
    std::string name{};  // empty: unknown
    bool autograd = false;
    Places calls{};
  };
  struct Call {
    std::int64_t ts_ns = 0;
    std::int64_t dur_ns = 0;
    std::uint64_t seq = 0;
    std::int64_t site = 0;  // 0: unknown
    const CallKind* kind = nullptr;
    const Thread* thread = nullptr;
    std::optional<StepPhase> range{};  // from the innermost range whose name has one
  };

  void call(const read::Event& e);
  void range(const read::Range& r);
  void thread(const read::ThreadName& t);

  const CallKind& kind(std::uint32_t call) const { return *calls[call].kind; }
  read::Amounts amounts(std::uint32_t call) const;
  Places since(std::int64_t thread, std::int64_t ts_ns) const;  // a thread's calls, last first
  Places within(const read::Range& range) const;                // calls within a pushed range
  void let_go();                                                // frees the calls

  const read::Process* rank;
  std::set<CallKind> kinds{};
  std::vector<Call> calls{};
  std::map<std::int64_t, Thread> threads{};
  bool all = true;  // false: there were more than kMost
};

// A rank's calls before, in and after a backward pass of a step. `ahead`, `late` and `behind` are
// calls of the thread that calls backward(), which blocks until autograd's threads have finished.
struct Pass {
  std::int64_t step = 0;
  std::size_t number = 0;  // within the step
  Places ahead{};          // the forward pass, and calls before it
  Places backward{};       // on autograd's threads
  Places late{};           // gradients reduced directly after it (DeepSpeed's last ones)
  bool last = false;       // of the step
  Places behind{};         // calls after the last one
};

struct Passes {
  std::vector<Pass> all{};
  std::uint64_t least_gradient = 0;

  // True for reductions too large for norms and flags. Reductions before a step's first backward
  // pass may also be that large.
  bool gradient(const CallKind& kind) const;
};

Passes passes_of(const RankCalls& rank, const std::vector<steps::Interval>& steps);

}  // namespace tprof::tables
