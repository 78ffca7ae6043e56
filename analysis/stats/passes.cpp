#include "stats/passes.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "interpose/format/step_mark.h"

namespace tprof::stats {
namespace {

bool reduces(Bucket b) {
  return b == Bucket::RESHARDING || b == Bucket::ALLREDUCE || b == Bucket::REDUCE;
}

bool by_autograd(const RankCalls& rank, std::uint32_t call) {
  return rank.threads[rank.calls[call].thread].autograd();
}

// Returns the thread that makes the most collectives, besides autograd's. Calls of several threads
// have no order.
std::uint32_t calling_thread(const RankCalls& rank) {
  std::uint32_t thread = 0;
  std::pair<std::ptrdiff_t, std::size_t> most;
  for (std::uint32_t t = 0; t < rank.threads.size(); ++t) {
    if (rank.threads[t].autograd()) continue;
    const Places& calls = rank.threads[t].calls;
    const std::pair made(
        std::ranges::count_if(calls, [&](std::uint32_t i) { return collective(rank.kind(i)); }),
        calls.size());
    if (made > most) thread = t;
    most = std::max(most, made);
  }
  return thread;
}

// Cuts the calls of a step into passes. late(call, behind) says whether a call of the thread that
// calls backward() is a gradient; `behind`: it directly follows a backward pass.
template <typename Late>
std::vector<Pass> cut(const RankCalls& rank, std::span<const std::uint32_t> calls,
                      std::int64_t step, const Late& late) {
  std::vector<Pass> passes;
  Places since;
  bool behind = false;
  for (const std::uint32_t i : calls) {
    const bool autograd = by_autograd(rank, i);
    if (!autograd && !late(i, behind)) {
      since.push_back(i);
      behind = false;
      continue;
    }
    if (!behind || (autograd && !passes.back().late.empty())) {
      passes.push_back({.step = step, .number = passes.size(), .ahead = std::exchange(since, {})});
    }
    (autograd ? passes.back().backward : passes.back().late).push_back(i);
    behind = true;
  }
  if (passes.empty()) return passes;
  passes.back().last = true;
  passes.back().behind = std::move(since);
  return passes;
}

}  // namespace

bool Passes::gradient(const CallKind& kind) const {
  return reduces(kind.bucket) && kind.bytes > kScalarBytes && kind.bytes >= least_gradient;
}

// DeepSpeed may reduce on the thread that called backward() alone, and gather nothing that every
// rank keeps. So a step without calls of autograd's threads has passes too: they show by calls that
// are gradients in other steps, or by reductions in a range that is named backward.
Passes passes_of(const RankCalls& rank, const std::vector<steps::Interval>& steps) {
  Passes found;
  for (const CallKind& k : rank.kinds) {
    if (reduces(k.bucket)) found.least_gradient = std::max(found.least_gradient, k.bytes);
  }
  found.least_gradient /= kSmallReduction;

  Places order = rank.by_time();
  std::erase_if(order, [&, thread = calling_thread(rank)](std::uint32_t i) {
    return rank.calls[i].thread != thread && !by_autograd(rank, i);
  });
  const auto kind = [&](std::uint32_t i) { return rank.calls[i].kind; };
  std::vector<std::span<const std::uint32_t>> calls;  // of each step
  std::set<std::uint32_t> activations;                // kinds before a step's first backward pass
  for (const steps::Interval& step : steps) {
    const auto time = [&](std::uint32_t i) { return rank.calls[i].ts_ns; };
    const auto from = std::ranges::lower_bound(order, step.from_ns, {}, time);
    const auto to = std::ranges::lower_bound(from, order.end(), step.to_ns, {}, time);
    const auto backward =
        std::find_if(from, to, [&](std::uint32_t i) { return by_autograd(rank, i); });
    calls.emplace_back(from, to);
    if (backward == to) continue;
    std::transform(from, backward, std::inserter(activations, activations.end()), kind);
  }

  std::vector<std::vector<Pass>> passes;  // of each step
  std::set<std::uint32_t> gradients;      // kinds that directly follow a backward pass
  for (std::size_t s = 0; s < steps.size(); ++s) {
    passes.push_back(cut(rank, calls[s], steps[s].step, [&](std::uint32_t i, bool behind) {
      return behind && found.gradient(rank.kind(i)) && !activations.contains(kind(i));
    }));
    for (const Pass& p : passes.back()) {
      std::ranges::transform(p.late, std::inserter(gradients, gradients.end()), kind);
    }
  }
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (passes[s].empty()) {
      passes[s] = cut(rank, calls[s], steps[s].step, [&](std::uint32_t i, bool) {
        return gradients.contains(kind(i)) ||
               (rank.calls[i].range == StepPhase::backward && found.gradient(rank.kind(i)));
      });
    }
    std::ranges::move(passes[s], std::back_inserter(found.all));
  }
  return found;
}

}  // namespace tprof::stats
