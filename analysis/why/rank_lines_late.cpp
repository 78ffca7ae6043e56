// Reductions of a step that begin when the device has computed all that it does before them, where
// others begin with the first gradients that are there.
#include "why/rank_lines.h"

namespace tprof::why {

// Nothing tells a gradient from other tensors, so all of these must hold: hardly any of their time
// is hidden; less is computed between them than before, as a division of each gradient, so tensor
// parallelism and micro-batches that each reduce are left out; and less is computed behind them, so
// results of a forward pass are. Calls that take next to nothing of the time (a norm, a loss) may
// be anywhere.
//
// The backward pass is half of what was computed or more, and the last gradients have nothing left
// that could hide them: a quarter, as of four buckets.
void RankLines::count_late_reductions(const Spans& hiding) {
  Cover hidden(hiding);
  const Spans works = either(computes_, unsure_);
  Cover computing(works);
  for (const std::span<const Collective> calls : calls_of_steps()) {
    struct Reduction {
      Span transfer;
      std::int64_t begins;
      std::uint64_t calls;
    };
    std::vector<Reduction> all;
    std::int64_t all_ns = 0;
    for (const Collective& c : calls) {
      if (c.bucket != Bucket::RESHARDING && c.bucket != Bucket::ALLREDUCE) continue;
      all.push_back({c.transfer(), c.on_device.from_ns, c.calls});
      all_ns += all.back().transfer.ns();
    }
    std::ranges::sort(all, std::ranges::greater(),
                      [](const Reduction& r) { return r.transfer.ns(); });
    Span these{INT64_MAX, INT64_MIN};
    std::uint64_t count = 0;
    std::int64_t ns = 0;
    std::int64_t exposed = 0;
    for (const auto& [its, begins, made] : all) {
      if (ns * 50 >= all_ns * 49) break;
      these = {std::min(these.from_ns, begins), std::max(these.to_ns, its.to_ns)};
      count += made;
      ns += its.ns();
      exposed += its.ns() - hidden(its.from_ns, its.to_ns);
    }
    if (count == 0 || exposed * 10 < ns * 9) continue;
    const auto [begins, ends] = steps_[calls.front().step].on_device;
    const std::int64_t before = computing(begins, these.from_ns);
    if (computing(these.from_ns, these.to_ns) * 4 > before * 3) continue;
    if (computing(these.to_ns, ends) * 2 > before) continue;
    LateReductions& late = facts_.late_reductions;
    ++late.steps;
    late.calls += count;
    late.ns += std::min(exposed, before / 2) / 4 * 3;
  }
}

}  // namespace tprof::why
