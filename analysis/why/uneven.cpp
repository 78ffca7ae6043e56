// Ranks that take turns at holding up the others: their work differs from step to step.
#include <algorithm>
#include <cmath>

#include "why/causes.h"
#include "why/lengths.h"
#include "why/numbers.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

using check::Kind;
using check::Ns;
using check::Percent;

constexpr double kLeastLost = 0.05;  // of a step
constexpr double kLeastSteps = 0.3;  // that lose something, of all

}  // namespace

void uneven_ranks(const Evidence& e, check::Findings& found) {
  if (e.replays == nullptr || e.steps.size() < 4) return;
  // Beside slow ranks less may be lost by that.
  std::vector<double> lost = e.replays->evened_out(true);
  std::vector<double> beside = e.replays->evened_out(false);
  if (mean(beside) < mean(lost)) lost = std::move(beside);
  // A few steps that take far longer than the others are told by themselves (step_series.cpp).
  const Lengths lengths = lengths_of(e);
  const double usual_loss = median(lost);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (lengths.far_longer(i)) lost[i] = std::min(lost[i], usual_loss);
  }
  const double ns = mean(lost);
  const auto lossy = std::ranges::count_if(lost, [&](double of_step) { return of_step * 2 > ns; });
  if (ns < kLeastLost * e.step_ns) return;
  if (static_cast<double>(lossy) < kLeastSteps * static_cast<double>(lost.size())) return;
  const Replays::Turns turns = e.replays->take_turns();
  check::Finding& f = add(found, Kind::uneven_ranks, {},
                          {{"share", Percent{100 * ns / e.step_ns}},
                           {"saves", Ns{std::llround(ns)}},
                           {"of_steps", e.steps.size()},
                           {"ranks", turns.ranks},
                           {"hosts", turns.hosts}});
  f.cost = cost_of(e, ns, 2 * mean_error(lost));
}

}  // namespace tprof::why
