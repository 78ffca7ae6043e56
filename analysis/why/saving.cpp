// Tells what a step would be shorter by if slow ranks were as fast as the others.
#include <algorithm>

#include "why/numbers.h"
#include "why/slow_ranks.h"

namespace tprof::why {
namespace {

// The middle one of the ranks that are not slow, in one step.
struct Usual {
  double needs = 0;  // of its host, beside long pauses
  double pauses = 0;
};
Usual usual_of(const Evidence& e, const Places& slow, std::size_t step) {
  std::vector<double> needs;
  std::vector<double> pauses;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    if (std::ranges::binary_search(slow, r)) continue;
    const Cell& c = e.times.of(r)[step];
    needs.push_back(c.length - c.spare - c.pauses);
    pauses.push_back(c.pauses);
  }
  return {median(std::move(needs)), median(std::move(pauses))};
}

// Returns how much longer a host takes beside its long pauses than the others. It may be by nature,
// or end with the pauses: its device waits for it because of them, and has to be woken by each
// launch then, where the others' hosts are ahead of their devices. It is by nature as far as the
// pauses do not outweigh it.
double slower_launches(const Evidence& e, const Usual& usual, std::size_t rank, std::size_t step) {
  const Cell& c = e.times.of(rank)[step];
  const double more = c.length - c.spare - c.pauses - usual.needs;
  const double idle = c.length - e.times.computed(rank, step) - c.exposed - c.pauses;
  return std::max(0.0, std::min({more, c.pauses - usual.pauses, idle}));
}

}  // namespace

Saving saving_of(const Evidence& e, const SlowRanks& ranks, const Grid& part, Grid& own) {
  const Places steps = ranks.steps.empty() ? every_step(e) : ranks.steps;
  std::vector<double> each;
  std::vector<double> surely;  // if their launches stay as slow
  for (const std::size_t i : steps) each.push_back(own.longest(i));
  const Grid before = own;
  mend(e, part, ranks.slow, steps, ranks.part == Part::compute, own);
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const std::size_t i = steps[n];
    double still = own.longest(i);
    if (ranks.part != Part::compute) {
      const Usual usual = usual_of(e, ranks.slow, e.steps[i]);
      for (const std::size_t r : ranks.slow) {
        const double slower = own.at(r, i) + slower_launches(e, usual, r, e.steps[i]);
        still = std::max(still, std::min<double>(slower, before.at(r, i)));
      }
    }
    surely.push_back(std::max(0.0, each[n] - still));
    each[n] -= own.longest(i);
  }
  const double share = static_cast<double>(steps.size()) / static_cast<double>(e.steps.size());
  const Saving saving{std::max(0.0, mean(each)) * share, 2 * mean_error(each) * share};
  const double less = std::max(0.0, saving.ns - mean(surely) * share);
  return {saving.ns - less / 2, saving.doubt + less / 2};
}

}  // namespace tprof::why
