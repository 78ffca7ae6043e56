// Reductions that each step makes when nothing is left that could hide them.
#include "why/causes.h"
#include "why/habit.h"

namespace tprof::why {

namespace {

constexpr double kLeastBytes = 1 << 20;  // of a step: the time of less is latency

double bytes_of_reduction(const read::Process& rank) {
  double bytes = 0;
  double calls = 0;
  for (const read::Row& row : read::rows_of(rank)) {
    if (row.bucket != Bucket::RESHARDING && row.bucket != Bucket::ALLREDUCE) continue;
    bytes += static_cast<double>(row.amounts.bytes);
    calls += static_cast<double>(row.amounts.calls);
  }
  return calls == 0 ? 0 : bytes / calls;
}

}  // namespace

void late_reductions(const Evidence& e, diagnose::Findings& found) {
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    const RankFacts& f = e.times.facts[r];
    // The stages of a pipeline reduce when all micro-batches are through.
    if (f.late_reductions.steps * 10 < f.steps * 9 || sends(e, r)) return;
  }
  const double calls = of_a_step(e, [](const RankFacts& f) { return f.late_reductions.calls; });
  if (calls * bytes_of_reduction(*e.times.ranks.front()) < kLeastBytes) return;
  const double ns = of_a_step(e, [](const RankFacts& f) { return f.late_reductions.ns; });
  tell(e, diagnose::Kind::late_reductions, within_hosts_spare(e, ns), {}, found);
}

}  // namespace tprof::why
