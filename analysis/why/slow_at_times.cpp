// Finds ranks that hold the others up in some of their steps.
#include <algorithm>
#include <utility>

#include "why/slow_ranks.h"

namespace tprof::why {
namespace {

// Leaves out the steps in which a rank held the others up by far less than in those that make up
// most of it: they differ as steps do anyway. If but one is left, it is by chance what it is, and
// the others are looked at without it.
void leave_out_far_less(const std::vector<double>& saved, Places& steps) {
  constexpr double kLesser = 1.0 / 3;
  while (steps.size() > 1) {
    double sum = 0;
    double squares = 0;
    for (const std::size_t i : steps) {
      const double ns = saved[i];
      sum += ns;
      squares += ns * ns;
    }
    const auto lesser = [&](std::size_t i) { return saved[i] < kLesser * squares / sum; };
    const auto others = std::stable_partition(steps.begin(), steps.end(), lesser);
    if (steps.end() - others > 1) {
      steps.erase(steps.begin(), others);
      return;
    }
    steps.erase(others, steps.end());
  }
}

// The places first, first + n, ... if all of them are among the steps; else none.
Places every_nth(const Places& steps, std::size_t first, std::size_t n, std::size_t all) {
  Places some;
  for (std::size_t i = first; i < all; i += n) {
    if (!std::ranges::binary_search(steps, i)) return {};
    some.push_back(i);
  }
  return some;
}

// A host that does more in every n-th step may be the later one in others, too, by less: those
// every n-th ones stay that make up two thirds of it and are twice as much as the others.
void keep_every_nth(const Evidence& e, const std::vector<double>& saved, Places& steps) {
  constexpr std::size_t kLongest = 1000;
  if (period_of(e, steps) != 0) return;
  const auto sum = [&](const Places& of) {
    double ns = 0;
    for (const std::size_t i : of) ns += saved[i];
    return ns;
  };
  const double all = sum(steps);
  for (std::size_t n = 2; n <= std::min(saved.size() / kFewestOfPeriod, kLongest); ++n) {
    for (const std::size_t first : steps) {
      if (first >= n) break;
      Places some = every_nth(steps, first, n, saved.size());
      if (some.size() < kFewestOfPeriod || period_of(e, some) == 0) continue;
      const double of_some = sum(some);
      const double more = of_some / static_cast<double>(some.size());
      const double less = (all - of_some) / static_cast<double>(steps.size() - some.size());
      if (3 * of_some < 2 * all || more < 2 * less) continue;
      steps = std::move(some);
      return;
    }
  }
}

}  // namespace

void leave_out_lesser(const Evidence& e, const std::vector<double>& saved, Places& steps) {
  leave_out_far_less(saved, steps);
  keep_every_nth(e, saved, steps);
}

}  // namespace tprof::why
