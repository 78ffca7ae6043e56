// Ranks that take turns in holding up the others: their work differs from step to step.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "why/causes.h"
#include "why/lengths.h"
#include "why/numbers.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

using check::Kind;
using check::Ns;
using check::Percent;
using check::Say;

constexpr double kLeastLost = 0.05;  // share of a step
constexpr double kLeastSteps = 0.3;  // share of steps that lose something

// Returns what each step loses by turns of these ranks. Slow ranks may explain some of the loss.
std::vector<double> lost_by(const Evidence& e, const Places& ranks, const Lengths& lengths) {
  std::vector<double> lost = e.replays->evened_out(true, ranks);
  std::vector<double> beside = e.replays->evened_out(false, ranks);
  if (mean(beside) < mean(lost)) lost = std::move(beside);
  // step_series.cpp reports single steps that take far longer than the others.
  const double usual_loss = median(lost);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (lengths.far_longer(i)) lost[i] = std::min(lost[i], usual_loss);
  }
  return lost;
}

// Returns the host or stage that has more of these turns than chance gives it.
std::optional<Slow> whose(const Evidence& e, const std::vector<Replays::Turn>& turns) {
  std::vector<Slow> sets = sets_of(e);
  for (Slow& set : sets) {
    const auto its = std::ranges::count_if(turns, [&](const auto& t) { return set.has(t.rank); });
    const double share =
        static_cast<double>(set.ranks.size()) / static_cast<double>(e.times.ranks.size());
    const double chance = chance_of(static_cast<std::size_t>(its), turns.size(), share);
    if (chance * static_cast<double>(sets.size()) < kChance) return std::move(set);
  }
  return std::nullopt;
}

}  // namespace

void uneven_ranks(const Evidence& e, check::Findings& found) {
  if (e.replays == nullptr || e.steps.size() < 4) return;
  const Lengths lengths = lengths_of(e);
  std::vector<double> lost = lost_by(e, every_rank(e), lengths);
  const double all_ns = mean(lost);
  if (all_ns < kLeastLost * e.step_ns) return;
  std::vector<Replays::Turn> turns = e.replays->turns();  // of steps that lose something
  std::erase_if(turns, [&](const Replays::Turn& turn) { return lost[turn.step] * 2 <= all_ns; });
  if (static_cast<double>(turns.size()) < kLeastSteps * static_cast<double>(lost.size())) return;
  Places who = every_rank(e);
  std::optional<Slow> set = whose(e, turns);
  if (set) {
    std::vector<double> of_set = lost_by(e, set->ranks, lengths);
    if (mean(of_set) < all_ns - kUsualShare * e.step_ns) set.reset();
    if (set) lost = std::move(of_set), who = set->ranks;
  }
  std::set<std::size_t> ranks;
  for (const Replays::Turn& turn : turns) ranks.insert(turn.rank);
  const double ns = mean(lost);
  const bool by_hosts = 2 * mean(e.replays->evened_out(true, who, false)) < ns;
  const std::string host = set ? host_of(e, who) : "";
  const bool loads = mostly_leads(more_idle(e, who, every_step(e)));
  const Kind kind = !set        ? Kind::uneven_ranks
                    : !by_hosts ? Kind::slow_gpu
                    : loads     ? Kind::slow_input
                                : Kind::slow_cpu;
  check::Finding& f = add(found, kind, set ? processes_of(e, who) : check::Processes(),
                          {{"share", Percent{100 * ns / e.step_ns}},
                           {"saves", Ns{std::llround(ns)}},
                           {"of_steps", e.steps.size()},
                           {"ranks", set ? std::nullopt : std::optional(ranks.size())},
                           {"stage", set && host.empty()},
                           {"host", host.empty() ? std::optional<std::string>() : host},
                           {"hosts", by_hosts},
                           {"loads", loads}});
  f.text.what = Say::uneven_ranks;
  f.cost = cost_of(e, ns, 2 * mean_error(lost));
  Places longer = every_step(e);
  std::erase_if(longer, [&](std::size_t i) { return !lengths.far_longer(i); });
  e.replays->even_out(who, longer);
}

}  // namespace tprof::why
