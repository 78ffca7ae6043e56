// Reductions that each step makes when nothing is left that could hide them.
#include "why/causes.h"
#include "why/habit.h"

namespace tprof::why {

namespace {

constexpr double kLeastBytes = 1 << 20;  // of a step: the time of less is latency

}  // namespace

void late_reductions(const Evidence& e, diagnose::Findings& found) {
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    const RankFacts& f = e.times.facts[r];
    // The stages of a pipeline reduce when all micro-batches are through.
    if (f.late_reductions.steps * 10 < f.steps * 9 || sends(e, r)) return;
  }
  const double calls = of_a_step(e, [](const RankFacts& f) { return f.late_reductions.calls; });
  read::Amounts all = moved(*e.times.ranks.front(), Bucket::ALLREDUCE);
  all += moved(*e.times.ranks.front(), Bucket::RESHARDING);
  if (calls * static_cast<double>(all.bytes) < kLeastBytes * static_cast<double>(all.calls)) return;
  const double ns = of_a_step(e, [](const RankFacts& f) { return f.late_reductions.ns; });
  tell_exposed(e, diagnose::Kind::late_reductions, ns, {}, found);
}

}  // namespace tprof::why
