// Finds ranks that hold the others up in some of their steps.
#include <algorithm>
#include <map>
#include <utility>

#include "why/lengths.h"
#include "why/numbers.h"
#include "why/slow_ranks.h"

namespace tprof::why {
namespace {

constexpr double kSomeStepsShare = 0.03;  // of a step, where it is only some steps

// Leaves out the steps in which a rank held the others up by far less than in those that make up
// most of it: they differ as steps do anyway. If but one is left, it is by chance what it is, and
// the others are looked at without it.
void leave_out_lesser(const Grid& beyond, std::size_t rank, Places& steps) {
  constexpr double kLesser = 1.0 / 3;
  while (steps.size() > 1) {
    double sum = 0;
    double squares = 0;
    for (const std::size_t i : steps) {
      const double ns = beyond.at(rank, i);
      sum += ns;
      squares += ns * ns;
    }
    const auto lesser = [&](std::size_t i) { return beyond.at(rank, i) < kLesser * squares / sum; };
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
void keep_every_nth(const Evidence& e, const Grid& beyond, std::size_t rank, Places& steps) {
  constexpr std::size_t kLongest = 1000;
  if (period_of(e, steps) != 0) return;
  const auto sum = [&](const Places& of) {
    double ns = 0;
    for (const std::size_t i : of) ns += beyond.at(rank, i);
    return ns;
  };
  const double all = sum(steps);
  for (std::size_t n = 2; n <= std::min(beyond.steps() / kFewestOfPeriod, kLongest); ++n) {
    for (const std::size_t first : steps) {
      if (first >= n) break;
      Places some = every_nth(steps, first, n, beyond.steps());
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

std::vector<SlowRanks> slow_at_times(const Evidence& e, const Grid& own) {
  const Grid all = beyond(own, kUsual);
  std::vector<double> widths;
  for (std::size_t r = 0; r < all.ranks(); ++r) {
    const std::vector<double> of_rank = all.of_rank(r);
    widths.push_back((quantile(of_rank, 0.84) - quantile(of_rank, 0.16)) / 2);
  }
  const double least = std::max(kSomeStepsShare * e.step_ns, kTimesUsual * median(widths));
  const Lengths lengths = lengths_of(e);
  const std::size_t warming_up = lengths.warming_up();
  std::map<std::size_t, Places> of_ranks;
  for (std::size_t i = 0; i < all.steps(); ++i) {
    // While all warm up, one may be a bit later by chance.
    const double least_here =
        i < warming_up ? std::max(least, (lengths.ns[i] - lengths.usual) / 2) : least;
    Places slow;
    for (std::size_t r = 0; r < all.ranks(); ++r) {
      if (all.at(r, i) > least_here) slow.push_back(r);
    }
    // Where many are, it is no rank's own trouble: their work differs.
    if (slow.size() * 8 > all.ranks() && slow.size() > 1) continue;
    for (const std::size_t r : slow) of_ranks[r].push_back(i);
  }
  std::vector<SlowRanks> found;
  for (auto& [rank, steps] : of_ranks) {
    leave_out_lesser(all, rank, steps);
    keep_every_nth(e, all, rank, steps);
    // Once is chance; long_steps tells it.
    if (steps.size() < 2) continue;
    found.push_back({.slow = {rank}, .steps = std::move(steps)});
  }
  return found;
}

std::optional<Part> part_of(const SlowRanks& ranks, const Grid& own, const Parts& parts) {
  const auto beyond_others = [&](const Grid& of) {
    double sum = 0;
    for (const std::size_t i : ranks.steps) {
      std::vector<double> others = of.of_step(i);
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(ranks.slow[0]));
      sum += of.at(ranks.slow[0], i) - median(std::move(others));
    }
    return sum;
  };
  const double all = beyond_others(own);
  for (const Part part : kPartsToTell) {
    if (beyond_others(of(parts, part).ns) * 2 > all) return part;
  }
  return std::nullopt;
}

}  // namespace tprof::why
