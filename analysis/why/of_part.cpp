// Compares what the ranks have of a part of their own time, and says how sure that is.
#include <algorithm>
#include <cmath>

#include "why/numbers.h"
#include "why/slow_ranks.h"

namespace tprof::why {
namespace {

// The chance that a coin falls on one side so often, or more often: the normal approximation with
// its correction for whole numbers.
double chance_of(std::size_t times, std::size_t of) {
  const auto n = static_cast<double>(of);
  return std::erfc((static_cast<double>(times) - 0.5 - n / 2) / std::sqrt(n / 2)) / 2;
}

}  // namespace

// A median's error says little of a host that is late by a different time in each step. In how many
// steps a rank has more than the middle one is then surer.
OfPart::OfPart(Grid of_part, double least_ns) : ns(std::move(of_part)) {
  const Grid all = beyond(ns, kUsual);
  const Grid of_middle = beyond(ns, 0.5);
  for (std::size_t r = 0; r < all.ranks(); ++r) {
    const std::vector<double> steps = all.of_rank(r);
    typical.push_back(median(steps));
    error.push_back(median_error(steps));
    mean.push_back(why::mean(steps));
    const auto more = std::ranges::count_if(of_middle.of_rank(r),
                                            [&](double ns_more) { return ns_more > least_ns; });
    chance.push_back(chance_of(static_cast<std::size_t>(more), steps.size()));
  }
}

}  // namespace tprof::why
