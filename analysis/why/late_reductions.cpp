// Reductions that each step makes after its whole computation, where other programs begin with the
// first gradients.
#include <algorithm>

#include "why/causes.h"
#include "why/habit.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

constexpr double kLeastBytes = 1 << 20;  // per step; smaller ones are bound by latency

// The reductions of a step; none if they may be hidden, or of other tensors than gradients.
//
// Nothing tells gradients from other tensors, so all of these must hold. Hardly any of their time
// is hidden. Less is computed between them than before them: this allows a division of each
// gradient, and excludes tensor parallelism and micro-batches that each reduce. Less is computed
// after them, which excludes results of a forward pass. Calls that take almost none of the time (a
// norm, a loss) may be anywhere.
struct Late {
  Places rows{};
  std::int64_t before_ns = 0;  // computation before them
};
Late late_of(const graph::Model& model, std::size_t r, Rows rows, const run::Interval& step) {
  const run::Rank& rank = model.run().ranks[r];
  const run::Calls& c = rank.calls;
  const auto takes = [&](std::size_t i) { return c.ended_ns[i] - c.all_came_ns[i]; };
  Places all;
  std::int64_t all_ns = 0;
  for (const std::size_t i : rows) {
    if (c.comm[i] == run::Calls::kNoComm) continue;
    if (c.bucket[i] != Bucket::RESHARDING && c.bucket[i] != Bucket::ALLREDUCE) continue;
    all.push_back(i);
    all_ns += takes(i);
  }
  std::ranges::sort(all, std::ranges::greater(), takes);
  Late late;
  run::Interval these{INT64_MAX, INT64_MIN};
  std::int64_t ns = 0;
  std::int64_t hidden = 0;
  for (const std::size_t i : all) {
    if (ns * 50 >= all_ns * 49) break;
    late.rows.push_back(i);
    these = {std::min(these.from_ns, c.came_ns[i]), std::max(these.to_ns, c.ended_ns[i])};
    ns += takes(i);
    hidden += run::covered(rank.work, {c.all_came_ns[i], c.ended_ns[i]});
  }
  if (late.rows.empty() || hidden * 10 > ns) return {};
  late.before_ns = run::covered(rank.work, {step.from_ns, these.from_ns});
  const bool between =
      run::covered(rank.work, {these.from_ns, these.to_ns}) * 4 > late.before_ns * 3;
  const bool behind = run::covered(rank.work, {these.to_ns, step.to_ns}) * 2 > late.before_ns;
  return between || behind ? Late() : late;
}

}  // namespace

void late_reductions(const Evidence& e, check::Findings& found) {
  // A late prefetch exposes the reductions before it. Without it they may be hidden.
  Changes before_that(e);
  if (std::ranges::count(found, check::Kind::late_prefetch, &check::Finding::kind) != 0) {
    begin_early(e, before_that);
  }
  Changes change = before_that;
  std::size_t steps = 0;
  std::size_t late = 0;
  double before = 0;
  double bytes = 0;
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const run::Calls& of = e.model->run().ranks[rank].calls;
    const std::size_t* const first = rows.data();
    const std::size_t before_it = first == e.model->by_call(rank).data() ? *first : first[-1];
    const auto last =
        std::ranges::max_element(rows, {}, [&](std::size_t i) { return of.ended_ns[i]; });
    const run::Interval step{of.ended_ns[before_it], of.ended_ns[*last]};
    const Late its = late_of(*e.model, rank, rows, step);
    ++steps;
    if (its.rows.empty()) return;
    ++late;
    before += static_cast<double>(its.before_ns);
    for (const std::size_t i : its.rows) {
      change.scale(rank, i, 0);  // ranks still wait for the last one
      bytes += static_cast<double>(of.bytes[i]);
    }
  });
  // Pipeline stages reduce after all micro-batches.
  if (late * 10 < steps * 9 || late == 0 || sends(e, 0) ||
      bytes < kLeastBytes * static_cast<double>(late))
    return;
  // The backward pass is at least half of the computation. Nothing is left to hide the last
  // gradients: a quarter of them, assuming four buckets.
  const double most = before / static_cast<double>(late) / 2;
  const Saving all{change.saving().ns - before_that.saving().ns, change.saving().doubt};
  const double from = 0.75 * std::min(all.ns - all.doubt, most);
  const double to = 0.75 * std::min(all.ns + all.doubt, most);
  tell(e, check::Kind::late_reductions, {(from + to) / 2, (to - from) / 2}, {}, found);
}

}  // namespace tprof::why
