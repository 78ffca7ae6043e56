// Ranks that hold up the others in one of two runs, and do not in the other. In few steps, and
// without a pattern, any busy machine has such ranks: these are told only if they are no chance.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "diff/compare.h"
#include "why/cause.h"
#include "why/why.h"

namespace tprof::diff {
namespace {

using check::Finding;
using check::Findings;
using check::Kind;

// True if its steps are n apart, n more than one, but for gaps, in which another rank may have been
// later. Each step is so by chance in one of n cases.
bool is_pattern(const Finding& f) {
  constexpr double kNoChance = 1000;
  std::int64_t n = 0;
  const std::vector<std::int64_t> steps = f.in_steps.list();
  for (const std::int64_t step : steps) n = std::gcd(n, step - steps.front());
  return n > 1 && std::pow(n, steps.size() - 1) >= kNoChance;
}

// Which steps a rank is slow in.
enum class When { always, every_nth, now_and_then };
When when(const Finding& f) {
  if (!f.steps) return When::always;
  if (f.kind == Kind::long_steps) return When::now_and_then;
  return check::has_value(f.text.values, "period") || is_pattern(f) ? When::every_nth
                                                                    : When::now_and_then;
}

// Its cost for a step: `doubts` is 1 for the most, and -1 for the least.
double ns_of(const Finding& f, double doubts) {
  const double per_step = static_cast<double>(f.cost->ns_per_step.value_or(0));
  const double in_run = static_cast<double>(std::max<std::int64_t>(f.cost->ns, 1));
  return per_step * (1 + doubts * static_cast<double>(f.cost->doubt_ns) / in_run);
}

// The same pause of a host may be seen before the first kernel or behind it, or as a long step.
bool alike(const Finding& a, const Finding& b) {
  if (!why::is_slow_rank(a.kind) || !why::is_slow_rank(b.kind)) return true;
  return (a.kind == Kind::slow_gpu) == (b.kind == Kind::slow_gpu);
}

// True if `other`, of the other run, is the same, or no less of it.
bool covers(const Finding& other, const Finding& f) {
  text::Ranks both = other.ranks;
  both.add(f.ranks);
  if (!alike(other, f) || both != other.ranks) return false;
  if (when(f) != When::now_and_then && when(f) == when(other)) return true;
  return ns_of(other, 1) >= ns_of(f, -1);
}

// In how many steps its ranks are known to hold up the others: of long ones, in one at least.
std::uint64_t steps_of(const Finding& f) {
  return why::is_slow_rank(f.kind) ? f.in_steps.size() : 1;
}

// True if its ranks are slow more often than any rank of the other run is by chance. Rare events
// vary by the root of their number.
bool more_often(const Finding& f, const Run& in, const Run& other) {
  constexpr double kDeviations = 3;
  std::uint64_t by_chance = 0;
  for (const Finding& o : *other.slow_ranks) {
    if (when(o) == When::now_and_then) by_chance = std::max(by_chance, steps_of(o));
  }
  const auto steps = static_cast<double>(in.steps.size());
  const auto others = static_cast<double>(other.steps.size());
  const double share = static_cast<double>(steps_of(f)) / steps;
  const double least = static_cast<double>(by_chance) / others;
  return share - least > kDeviations * std::sqrt(share / steps + least / others);
}

// True if most of its steps are far longer than any of the other run.
bool far_longer(const Finding& f, const Lengths& steps) {
  if (when(f) != When::now_and_then) return false;
  const auto far = static_cast<std::uint64_t>(
      std::ranges::count_if(steps.far, [&](auto number) { return f.in_steps.contains(number); }));
  return far != 0 && far * 2 >= steps_of(f);
}

}  // namespace

void compare_slow_ranks(const Run& a, const Run& b, Diff& to) {
  if (!a.slow_ranks || !b.slow_ranks || !to.no_times.empty() || to.times.empty()) return;
  to.slow_ranks.emplace();
  for (const bool in_b : {true, false}) {
    const Run& in = in_b ? b : a;
    const Run& other = in_b ? a : b;
    for (const Finding& f : *in.slow_ranks) {
      if (!f.cost) continue;
      const bool both = std::ranges::any_of(
          *other.slow_ranks, [&](const Finding& o) { return o.cost && covers(o, f); });
      const bool chance = when(f) == When::now_and_then &&
                          !(more_often(f, in, other) && ns_of(f, -1) > to.times[0].noise);
      if ((both || chance) && !far_longer(f, in_b ? to.lengths_b : to.lengths_a)) continue;
      to.slow_ranks->push_back({in_b, f});
    }
  }
}

}  // namespace tprof::diff
