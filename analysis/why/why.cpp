#include "why/why.h"

#include "why/causes.h"

namespace tprof::why {
namespace {

void find_causes(const job::Job& job, Why& why) {
  const std::vector<std::size_t> steps = why.times->counted();
  if (steps.empty()) return;
  why.mean = mean_of(*why.times);
  const Evidence e{.job = job,
                   .times = *why.times,
                   .steps = steps,
                   .transfers = why.transfers,
                   .step_ns = why.mean.length};
  constexpr Cause kAll[] = {
#define X(name) name,
      TPROF_CAUSES(X)
#undef X
  };
  for (const Cause cause : kAll) {
    if (why.times->known() || cause == step_series) cause(e, why.findings);
  }
}

}  // namespace

diagnose::Cost cost_of(const Evidence& of, double ns, double doubt_ns) {
  const auto steps = static_cast<double>(of.times.steps.size());
  return {.ns = std::llround(ns * steps),
          .doubt_ns = std::llround(doubt_ns * steps),
          .share = ns / of.step_ns,
          .ns_per_step = std::llround(ns)};
}

void want(collect::Passes& passes, const steps::Found& found, Why& to) {
  want_transfers(passes, to.transfers);
  const auto nothing = [](const read::Process&, collect::Collectors&) {};
  passes.want(nothing, [&, nothing](const collect::Lines&) {
    want_times(passes, found, to.transfers.last_came.get(), to.times);
    passes.want(nothing, [&](const collect::Lines&) { find_causes(passes.job(), to); });
  });
}

}  // namespace tprof::why
