#include "tables/rank_calls.h"

#include <algorithm>
#include <span>

#include "interpose/format/ledger.h"
#include "interpose/format/ranges.h"
#include "interpose/format/step_mark.h"
#include "tables/durations.h"
#include "text/text.h"

namespace tprof::tables {

namespace {

constexpr std::size_t kMostThreads = 4096;

bool reduces(Bucket b) {
  return b == Bucket::RESHARDING || b == Bucket::ALLREDUCE || b == Bucket::REDUCE;
}

// Returns the calls of autograd's threads and of the thread with the most collectives besides
// these, in time order. Other threads have no fixed order.
Places calls_in_order(const RankCalls& rank) {
  Places order;
  Places calling;
  std::pair<std::ptrdiff_t, std::size_t> most;
  for (const auto& [tid, t] : rank.threads) {
    if (t.autograd) {
      order.insert(order.end(), t.calls.begin(), t.calls.end());
      continue;
    }
    const auto counts = [&](std::uint32_t i) { return collective(rank.kind(i)); };
    const std::pair made(std::ranges::count_if(t.calls, counts), t.calls.size());
    if (made > most) calling = t.calls;
    most = std::max(most, made);
  }
  order.insert(order.end(), calling.begin(), calling.end());
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(rank.calls[i].ts_ns, i); });
  return order;
}

// Splits the calls of a step into passes. late(call, behind) says whether a call of the thread that
// calls backward() is a gradient; `behind`: it directly follows a backward pass.
template <typename Late>
std::vector<Pass> cut(const RankCalls& rank, std::span<const std::uint32_t> calls,
                      std::int64_t step, const Late& late) {
  std::vector<Pass> passes;
  Places since;
  bool behind = false;
  for (const std::uint32_t i : calls) {
    const bool autograd = rank.calls[i].thread->autograd;
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

using Words = std::vector<std::string>;

constexpr std::string_view kOptimizers[] = {"optimizer", "optimiser", "optim"};
constexpr std::pair<std::string_view, std::string_view> kLoads[] = {
    {"batch", "generator"}, {"get", "batch"},  {"load", "data"},  {"data", "loading"},
    {"data", "load"},       {"load", "batch"}, {"next", "batch"}, {"data", "loader"}};

template <std::size_t n>
bool any(const Words& words, const std::string_view (&of)[n]) {
  return std::ranges::find_first_of(words, of) != words.end();
}

// A single word has to be one of these. Next to "step" or "update", a word may also end in one.
bool is_optimizer(const Words& words) {
  if (words.size() == 1) return any(words, kOptimizers);
  const bool named = std::ranges::any_of(words, [&](const std::string& w) {
    return w == "deepspeedengine" ||
           std::ranges::any_of(kOptimizers, [&](std::string_view end) { return w.ends_with(end); });
  });
  return named && any(words, {"step", "update"});
}

bool is_load(const Words& words) {
  const auto next_to = [](const auto& pair) {
    return [&pair](const std::string& a, const std::string& b) {
      return a == pair.first && b == pair.second;
    };
  };
  return any(words, {"dataloader", "dataloading"}) ||
         std::ranges::any_of(kLoads, [&](const auto& pair) {
           return std::ranges::adjacent_find(words, next_to(pair)) != words.end();
         });
}

// Uses the phase given by the program (tprof_phase), else the name.
std::optional<StepPhase> phase_of_range(const read::Range& range) {
  if (range.domain != kScopeDomain || range.category_name != kScopePhase) {
    return phase_of_name(range.name);
  }
  const auto* said = std::ranges::find(kStepPhaseNames, range.name);
  if (said == std::end(kStepPhaseNames)) return std::nullopt;
  return static_cast<StepPhase>(said - kStepPhaseNames);
}

}  // namespace

bool collective(const CallKind& kind) {
  return !is_copy(kind.bucket) && kind.bucket != Bucket::P2P;
}

void RankCalls::thread(const read::ThreadName& t) {
  if (threads.size() == kMostThreads) return;
  Thread& of = threads[t.thread];
  of.name = t.name;
  of.autograd = thread_kind(t.name) == ThreadKind::autograd;
}

void RankCalls::call(const read::Event& e) {
  if (!e.executed()) return;
  if (calls.size() == kMost || threads.size() == kMostThreads) {
    all = false;
    return;
  }
  const auto kind = kinds.insert(
      {e.bucket, e.comm.value_or(-1), e.count, e.bytes, read::amounts_of(e).elements, e.dtype});
  Thread& by = threads[e.thread];
  by.calls.push_back(static_cast<std::uint32_t>(calls.size()));
  calls.push_back(
      {e.ts_ns, e.dur_ns, e.collective() ? e.seq : UINT64_MAX, e.site, &*kind.first, &by});
}

Places RankCalls::since(std::int64_t thread, std::int64_t ts_ns) const {
  Places found;
  const auto of = threads.find(thread);
  if (of == threads.end()) return found;
  const Places& made = of->second.calls;
  for (auto i = made.rbegin(); i != made.rend() && calls[*i].ts_ns >= ts_ns; ++i) {
    found.push_back(*i);
  }
  return found;
}

// A range's line comes after those of its thread's calls within it.
Places RankCalls::within(const read::Range& r) const {
  if (r.phase != read::Range::Phase::closed &&
      !(r.phase == read::Range::Phase::open && r.id.empty()))
    return {};
  Places found = since(r.thread, r.ts_ns);
  if (r.phase == read::Range::Phase::closed) {
    std::erase_if(found, [&](auto i) { return calls[i].ts_ns >= r.ts_ns + r.dur_ns; });
  }
  return found;
}

// The lines of inner ranges come before those of outer ones.
void RankCalls::range(const read::Range& r) {
  const std::optional<StepPhase> phase = phase_of_range(r);
  if (!phase) return;
  for (const std::uint32_t i : within(r)) {
    if (!calls[i].range) calls[i].range = phase;
  }
}

read::Amounts RankCalls::amounts(std::uint32_t call) const {
  const CallKind& k = kind(call);
  return {.calls = 1,
          .count = k.count,
          .elements = k.elements,
          .bytes = k.bytes,
          .host_ns = read::not_below_0(calls[call].dur_ns)};
}

void RankCalls::let_go() {
  const bool had_all = all;
  *this = RankCalls(*rank);
  all = had_all;
}

bool Passes::gradient(const CallKind& kind) const {
  return reduces(kind.bucket) && kind.bytes > kScalarBytes && kind.bytes >= least_gradient;
}

// DeepSpeed may reduce only on the thread that called backward(), and gather nothing. So a step
// without calls of autograd's threads has passes too: calls that are gradients in other steps show
// them, or reductions in a range named backward.
Passes passes_of(const RankCalls& rank, const std::vector<steps::Interval>& steps) {
  Passes found;
  for (const CallKind& k : rank.kinds) {
    if (reduces(k.bucket)) found.least_gradient = std::max(found.least_gradient, k.bytes);
  }
  found.least_gradient /= kSmallReduction;

  const Places order = calls_in_order(rank);
  const auto kind = [&](std::uint32_t i) { return rank.calls[i].kind; };
  const auto time = [&](std::uint32_t i) { return rank.calls[i].ts_ns; };
  std::vector<std::span<const std::uint32_t>> calls;  // by step
  std::set<const CallKind*> activations;              // kinds before a step's first backward pass
  for (const steps::Interval& step : steps) {
    const auto from = std::ranges::lower_bound(order, step.from_ns, {}, time);
    const auto to = std::ranges::lower_bound(from, order.end(), step.to_ns, {}, time);
    calls.emplace_back(from, to);
    const auto backward =
        std::find_if(from, to, [&](std::uint32_t i) { return rank.calls[i].thread->autograd; });
    if (backward == to) continue;
    std::transform(from, backward, std::inserter(activations, activations.end()), kind);
  }

  std::vector<std::vector<Pass>> passes;  // by step
  std::set<const CallKind*> gradients;    // kinds that directly follow a backward pass
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

std::optional<StepPhase> phase_of_name(std::string_view name) {
  const Words words = text::words(name);
  const bool forward = any(words, {"forward", "fwd"});
  const bool backward = any(words, {"backward", "bwd"});
  if (forward && backward) return std::nullopt;  // it covers both passes
  if (forward) return StepPhase::forward;
  if (backward) return StepPhase::backward;
  if (is_optimizer(words)) return StepPhase::optimizer;
  if (is_load(words)) return StepPhase::load;
  return std::nullopt;
}

}  // namespace tprof::tables
