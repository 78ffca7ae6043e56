// Ranks that take turns at holding up the others: their work differs from step to step.
#include <algorithm>

#include "why/causes.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

using diagnose::Kind;
using diagnose::Ns;
using diagnose::Percent;

constexpr double kLeastLost = 0.05;  // of a step

}  // namespace

void uneven_ranks(const Evidence& e, diagnose::Findings& found) {
  const std::size_t ranks = e.times.ranks.size();
  if (ranks < 2 || e.steps.size() < 4) return;
  std::vector<double> lost;
  std::vector<std::size_t> slowest(ranks);
  for (const std::size_t s : e.steps) {
    std::vector<double> own;
    for (std::size_t r = 0; r < ranks; ++r) own.push_back(e.times.own(r, s));
    const auto most = std::ranges::max_element(own);
    ++slowest[static_cast<std::size_t>(most - own.begin())];
    lost.push_back(*most - mean(own));
  }
  double ns = mean(lost);
  for (const diagnose::Finding& f : found) {
    if (is_slow_rank(f.kind) || f.kind == Kind::slow_link)
      ns -= static_cast<double>(*f.cost->ns_per_step);
  }
  const auto often = static_cast<double>(*std::ranges::max_element(slowest));
  // A rank that is the slowest in half of the steps is a finding of its own.
  if (ns < kLeastLost * e.step_ns || often * 2 > static_cast<double>(e.steps.size())) return;
  diagnose::Finding& f = add(found, Kind::uneven_ranks, {},
                             {{"share", Percent{100 * ns / e.step_ns}},
                              {"saves", Ns{std::llround(ns)}},
                              {"of_steps", e.steps.size()},
                              {"ranks", static_cast<std::uint64_t>(std::ranges::count_if(
                                            slowest, [](std::size_t n) { return n != 0; }))}});
  f.cost = cost_of(e, ns, 2 * mean_error(lost));
}

}  // namespace tprof::why
