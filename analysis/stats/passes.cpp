#include "stats/passes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "interpose/format/step_mark.h"

namespace tprof::stats {
namespace {

bool reduces(Bucket b) {
  return b == Bucket::RESHARDING || b == Bucket::ALLREDUCE || b == Bucket::REDUCE;
}

// Returns the thread that makes the most collectives, besides autograd's. Calls of several threads
// have no order.
std::uint32_t calling_thread(const RestCalls& rank) {
  const auto collective = [&](std::uint32_t place) {
    const Bucket b = rank.kinds[rank.calls[place].kind].bucket;
    return !is_copy(b) && b != Bucket::P2P;
  };
  std::uint32_t thread = 0;
  std::size_t most = 0;
  for (std::uint32_t t = 0; t < rank.threads.size(); ++t) {
    if (rank.threads[t].autograd()) continue;
    const Places& calls = rank.threads[t].calls;
    const auto n = std::ranges::count_if(calls, collective);
    const std::size_t weight = 1 + calls.size() + static_cast<std::size_t>(n) * rank.calls.size();
    if (weight > most) thread = t;
    most = std::max(most, weight);
  }
  return thread;
}

StepPasses cut(const RestCalls& rank, const Places& by_time, const steps::Interval& interval,
               std::uint32_t thread) {
  const auto time = [&](std::uint32_t place) { return rank.calls[place].ts_ns; };
  StepPasses step{.step = interval.step};
  Places since;
  bool backward = false;  // the last call seen belongs to a backward pass
  const auto first = std::ranges::lower_bound(by_time, interval.from_ns, {}, time);
  for (auto i = first; i != by_time.end() && time(*i) < interval.to_ns; ++i) {
    const std::uint32_t by = rank.calls[*i].thread;
    if (rank.threads[by].autograd()) {
      if (!backward) step.passes.push_back({.before = std::exchange(since, {})});
      step.passes.back().backward.push_back(*i);
      backward = true;
    } else if (by == thread) {
      since.push_back(*i);
      backward = false;
    }
  }
  step.behind = std::move(since);
  return step;
}

// Finds the passes of a step in which autograd's threads made no call. DeepSpeed reduces on the
// thread that called backward(), and gathers nothing that every rank keeps. Its passes show by
// calls that are gradients elsewhere, or by reductions in a range that is named backward.
StepPasses cut_at_gradients(const RestCalls& rank, StepPasses step, const Passes& all,
                            const std::set<std::uint32_t>& gradients) {
  const auto is_gradient = [&](std::uint32_t place) {
    const RankCall& call = rank.calls[place];
    return gradients.contains(call.kind) ||
           (call.range == StepPhase::backward && all.gradient(rank.kinds[call.kind]));
  };
  Places since;
  bool late = false;
  for (const std::uint32_t place : std::exchange(step.behind, {})) {
    if (!is_gradient(place)) {
      since.push_back(place);
      late = false;
      continue;
    }
    if (!late) step.passes.push_back({.before = std::exchange(since, {})});
    step.passes.back().late.push_back(place);
    late = true;
  }
  step.behind = std::move(since);
  return step;
}

std::set<std::uint32_t> gradients_of(const RestCalls& rank, const Passes& all) {
  std::set<std::uint32_t> gradients;
  for (const StepPasses& s : all.steps) {
    for (const Pass& pass : s.passes) {
      for (const std::uint32_t place : pass.late) gradients.insert(rank.calls[place].kind);
    }
  }
  return gradients;
}

// Moves the gradients that directly follow a backward pass to `late`. Reductions before the first
// backward pass of a step are not gradients.
void take_gradients(const RestCalls& rank, Passes& all) {
  std::set<std::uint32_t> activations;
  for (const StepPasses& s : all.steps) {
    if (s.passes.empty()) continue;
    for (const std::uint32_t place : s.passes[0].before) activations.insert(rank.calls[place].kind);
  }
  const auto take = [&](Places& from, Places& to) {
    const auto end = std::ranges::find_if_not(from, [&](std::uint32_t place) {
      const std::uint32_t kind = rank.calls[place].kind;
      return all.gradient(rank.kinds[kind]) && !activations.contains(kind);
    });
    to.assign(from.begin(), end);
    from.erase(from.begin(), end);
  };
  for (StepPasses& s : all.steps) {
    for (std::size_t k = 0; k < s.passes.size(); ++k) {
      const bool last = k + 1 == s.passes.size();
      take(last ? s.behind : s.passes[k + 1].before, s.passes[k].late);
    }
  }
}

}  // namespace

bool Passes::gradient(const CallKind& kind) const {
  return reduces(kind.bucket) && kind.bytes > kScalarBytes && kind.bytes >= least_gradient;
}

Passes passes_of(const RestCalls& rank, const Places& by_time,
                 const std::vector<steps::Interval>& steps) {
  Passes all;
  for (const CallKind& k : rank.kinds) {
    if (reduces(k.bucket)) all.least_gradient = std::max(all.least_gradient, k.bytes);
  }
  all.least_gradient /= kSmallReduction;
  const std::uint32_t thread = calling_thread(rank);
  for (const steps::Interval& i : steps) all.steps.push_back(cut(rank, by_time, i, thread));
  take_gradients(rank, all);
  const std::set<std::uint32_t> gradients = gradients_of(rank, all);
  for (StepPasses& s : all.steps) {
    if (s.passes.empty()) s = cut_at_gradients(rank, std::move(s), all, gradients);
  }
  std::erase_if(all.steps, [](const StepPasses& s) { return s.passes.empty(); });
  return all;
}

}  // namespace tprof::stats
