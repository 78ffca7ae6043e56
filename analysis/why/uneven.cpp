// Ranks that take turns at holding up the others: their work differs from step to step.
#include <algorithm>
#include <cmath>

#include "why/causes.h"
#include "why/lengths.h"
#include "why/numbers.h"
#include "why/own_times.h"

namespace tprof::why {
namespace {

using diagnose::Kind;
using diagnose::Ns;
using diagnose::Percent;

constexpr double kLeastLost = 0.05;  // of a step
constexpr double kLeastSteps = 0.3;  // that lose something, of all

double sum(const Grid& all) {
  double ns = 0;
  for (std::size_t r = 0; r < all.ranks(); ++r) {
    for (std::size_t i = 0; i < all.steps(); ++i) ns += all.at(r, i);
  }
  return ns;
}

}  // namespace

void uneven_ranks(const Evidence& e, diagnose::Findings& found) {
  const Grid compute = part_of_own(e, Part::compute);
  // A stage of a pipeline does more or less beside computing as its messages come.
  const Grid own = sends(e, 0) ? compute : own_times(e);
  const std::size_t ranks = own.ranks();
  if (ranks < 2 || e.steps.size() < 4) return;
  // A rank does this beside computing, if nothing comes between.
  Grid rest = own;
  std::vector<double> usual;
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t i = 0; i < e.steps.size(); ++i) rest.at(r, i) -= compute.at(r, i);
    usual.push_back(median(rest.of_rank(r)));
  }
  std::vector<double> lost;
  std::vector<double> always(ranks);  // how much longer than the mean each is on the average
  std::vector<std::size_t> slowest(ranks);
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const std::vector<double> times = own.of_step(i);
    const double usual_time = mean(times);
    for (std::size_t r = 0; r < ranks; ++r) {
      always[r] += (times[r] - usual_time) / static_cast<double>(e.steps.size());
    }
    const auto most = std::ranges::max_element(times);
    ++slowest[static_cast<std::size_t>(most - times.begin())];
    // Some rank has to compute what is computed, and to do what all do beside it. A pause need not
    // be.
    std::vector<double> more = rest.of_step(i);
    for (std::size_t r = 0; r < ranks; ++r) more[r] -= usual[r];
    lost.push_back(*most - mean(compute.of_step(i)) - mean(usual) - median(std::move(more)));
  }
  // A few steps that take far longer than the others are told by themselves (step_series.cpp).
  const Lengths lengths = lengths_of(e);
  const double usual_loss = median(lost);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (lengths.far_longer(i)) lost[i] = std::min(lost[i], usual_loss);
  }
  // A rank that is the slowest in half of the steps, and more than of two by chance, is a finding
  // of its own; so are a few steps.
  const auto steps = static_cast<double>(lost.size());
  const auto often = static_cast<double>(*std::ranges::max_element(slowest));
  double ns = mean(lost);
  const auto lossy = static_cast<double>(
      std::ranges::count_if(lost, [&](double of_step) { return of_step * 2 > ns; }));
  if (often > steps / 2 + 0.75 * std::sqrt(steps) || lossy < kLeastSteps * steps) return;
  if (often * 2 > steps) ns -= *std::ranges::max_element(always);
  for (const diagnose::Finding& f : found) {
    if (is_slow_rank(f.kind) || f.kind == Kind::slow_link) {
      ns -= static_cast<double>(*f.cost->ns_per_step);
    }
  }
  // In a pipeline every stage waits for a long batch in turn: it may cost as much more as a stage
  // takes beside computing.
  double doubt = 2 * mean_error(lost);
  if (sends(e, 0)) {
    const double most = ns * sum(own_times(e)) / sum(compute);
    doubt += (most - ns) / 2;
    ns = (ns + most) / 2;
  }
  if (ns < kLeastLost * e.step_ns) return;
  diagnose::Finding& f = add(found, Kind::uneven_ranks, {},
                             {{"share", Percent{100 * ns / e.step_ns}},
                              {"saves", Ns{std::llround(ns)}},
                              {"of_steps", e.steps.size()},
                              {"ranks", static_cast<std::uint64_t>(std::ranges::count_if(
                                            slowest, [](std::size_t n) { return n != 0; }))}});
  f.cost = cost_of(e, ns, doubt);
}

}  // namespace tprof::why
