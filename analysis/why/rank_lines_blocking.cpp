// Copies for which a rank's program waits in the middle of its steps.
#include "why/numbers.h"
#include "why/rank_lines.h"

namespace tprof::why {

void RankLines::count_blocking(const Spans& works) {
  std::ranges::sort(copies_, {}, [](const Copy& c) { return c.call.from_ns; });
  std::vector<Blocking> to_device(steps_.size());
  std::vector<Blocking> to_host(steps_.size());
  auto step = steps_.begin();
  Span seen;
  for (const Copy& c : copies_) {
    while (step != steps_.end() && step->on_device.to_ns <= c.call.to_ns) ++step;
    if (step == steps_.end() || !step->counts || c.call.from_ns < step->on_device.from_ns) continue;
    // Loading a batch and reading the loss, at the two ends of a step, are not in its middle.
    const Span gap = gap_at(works, c.call.to_ns, step->on_device);
    if (gap.from_ns == step->on_device.from_ns || gap.to_ns == step->on_device.to_ns) continue;
    Blocking& to =
        (c.to_device ? to_device : to_host)[static_cast<std::size_t>(step - steps_.begin())];
    ++to.calls;
    to.bytes += c.bytes;
    if (gap != seen) to.idle_ns += gap.ns();
    seen = gap;
  }
  facts_.to_device = usual_of(to_device);
  facts_.to_host = usual_of(to_host);
}

// Adds up the steps that count and copy as most do. A checkpoint or an evaluation in some of them
// is not what each step does.
Blocking RankLines::usual_of(std::span<const Blocking> of_steps) const {
  std::vector<double> calls;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].counts) calls.push_back(static_cast<double>(of_steps[i].calls));
  }
  const double most = 2 * median(std::move(calls));
  Blocking all;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Blocking& one = of_steps[i];
    if (!steps_[i].counts || static_cast<double>(one.calls) > most) continue;
    ++all.steps;
    all.calls += one.calls;
    all.bytes += one.bytes;
    all.idle_ns += one.idle_ns;
  }
  return all;
}

}  // namespace tprof::why
