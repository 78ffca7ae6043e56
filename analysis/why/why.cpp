#include "why/why.h"

#include <algorithm>

#include "why/causes.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

double step_ns(const Times& times, const std::vector<std::size_t>& steps) {
  std::vector<double> all;
  for (std::size_t r = 0; r < times.ranks.size(); ++r) {
    for (const std::size_t s : steps) all.push_back(times.of(r)[s].length);
  }
  return median(std::move(all));
}

void find_causes(const job::Job& job, Why& why) {
  if (!why.times->known()) return;
  const std::vector<std::size_t> steps = why.times->counted();
  const Evidence e{.job = job,
                   .times = *why.times,
                   .steps = steps,
                   .transfers = why.transfers,
                   .step_ns = step_ns(*why.times, steps)};
  constexpr Cause kAll[] = {
#define X(name) name,
      TPROF_CAUSES(X)
#undef X
  };
  for (const Cause cause : kAll) cause(e, why.findings);
  std::ranges::stable_sort(why.findings, std::ranges::greater(),
                           [](const diagnose::Finding& f) { return f.cost ? f.cost->ns : 0; });
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
