// Steps that take longer than the others: a few, every nth one, or more and more.
#include <algorithm>
#include <cmath>

#include "why/causes.h"
#include "why/lengths.h"
#include "why/numbers.h"
#include "why/slow_ranks.h"
#include "why/step_copies.h"

namespace tprof::why {
namespace {

using check::Finding;
using check::Findings;
using check::Kind;
using check::Ns;
using check::Percent;

constexpr std::size_t kFewest = 4;
constexpr std::size_t kFewestOfLevel = 5;
constexpr double kMostOfTime = 0.5;  // share of the steps' time

// The Theil-Sen slope, and its lower bound: the true slope is smaller in less than one of a hundred
// series (Sen 1968). 0: the series is too short to tell.
struct Drift {
  double slope = 0;
  double least = 0;
};
Drift drift_of(const std::vector<double>& series) {
  constexpr double kSure = 2.576;  // standard deviations: 99 % lie within
  const std::size_t every = series.size() / 512 + 1;
  std::vector<double> x;
  for (std::size_t i = 0; i < series.size(); i += every) x.push_back(series[i]);
  std::vector<double> slopes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = i + 1; j < x.size(); ++j) {
      slopes.push_back((x[j] - x[i]) / static_cast<double>((j - i) * every));
    }
  }
  const auto n = static_cast<double>(x.size());
  const double width =
      std::sqrt(n * (n - 1) * (2 * n + 5) / 18) / static_cast<double>(slopes.size());
  const double share = (1 - kSure * width) / 2;
  return {median(slopes), share < 0 ? 0 : quantile(std::move(slopes), share)};
}

// How likely it is that a series without a change differs that much in rank before and after a
// place (Pettitt 1979), or is that well sorted by it: of all orders, 1 in (n over k) has its k
// shortest steps first.
double chance_of_jump(const std::vector<double>& series, std::size_t at) {
  const auto begin = series.begin() + static_cast<std::ptrdiff_t>(at);
  std::vector<double> before(series.begin(), begin);
  std::ranges::sort(before);
  double in_order = 0;
  for (auto ns = begin; ns != series.end(); ++ns) {
    const auto [shorter, longer] = std::equal_range(before.begin(), before.end(), *ns);
    in_order += static_cast<double>(shorter - before.begin());
    in_order -= static_cast<double>(before.end() - longer);
  }
  const auto n = static_cast<double>(series.size());
  const double chance = 2 * std::exp(-6 * in_order * in_order / (n * n * n + n * n));
  const auto k = static_cast<double>(at);
  if (in_order < k * (n - k)) return chance;
  double sorted = 0;  // by any place that is looked at
  for (double i = kFewestOfLevel; i + kFewestOfLevel <= n; ++i) {
    sorted += std::exp(std::lgamma(i + 1) + std::lgamma(n - i + 1) - std::lgamma(n + 1));
  }
  return std::min(chance, sorted);
}

// Returns the place from which on steps take longer, if a jump explains the series better than
// steady growth; 0: none. Minimises the sum of squares of two levels (Fisher 1958, Bai 1994).
std::size_t jump_of(const Lengths& all, double slope) {
  const std::size_t n = all.ns.size();
  std::vector<double> x;  // without pauses, which would dominate
  for (const double ns : all.ns) x.push_back(std::min(ns, all.far()));
  std::vector<double> sums(n + 1);
  std::vector<double> squares(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    sums[i + 1] = sums[i] + x[i];
    squares[i + 1] = squares[i] + x[i] * x[i];
  }
  const auto rest = [&](std::size_t from, std::size_t to) {
    const double sum = sums[to] - sums[from];
    return squares[to] - squares[from] - sum * sum / static_cast<double>(to - from);
  };
  double steady = 0;
  const double middle = sums[n] / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double line = middle + slope * (static_cast<double>(i) - static_cast<double>(n - 1) / 2);
    steady += (x[i] - line) * (x[i] - line);
  }
  std::size_t at = 0;
  double least = std::min(steady, rest(0, n) / 2);
  for (std::size_t i = kFewestOfLevel; i + kFewestOfLevel <= n; ++i) {
    const double apart = rest(0, i) + rest(i, n);
    if (apart >= least) continue;
    least = apart;
    at = i;
  }
  return at;
}

// True if steps make as many calls from this place on as before. Others do something else, such as
// training after a generation.
bool as_many_calls(const Evidence& e, std::size_t at) {
  std::vector<double> calls[2];
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    double sum = 0;
    for (const std::size_t r : every_rank(e)) sum += e.times.of(r)[e.steps[i]].collectives;
    calls[i < at ? 0 : 1].push_back(sum);
  }
  return median(calls[0]) == median(calls[1]);
}

// Returns by how much; 0: not worth reporting.
double tell_jump(const Evidence& e, const Lengths& all, std::size_t at, Findings& found) {
  const double before = median({all.ns.begin(), all.ns.begin() + static_cast<std::ptrdiff_t>(at)});
  const double after = median({all.ns.begin() + static_cast<std::ptrdiff_t>(at), all.ns.end()});
  if (after - before < 0.05 * before || !as_many_calls(e, at)) return 0;
  const double part = static_cast<double>(all.ns.size() - at) / static_cast<double>(all.ns.size());
  const double ns = (after - before) * part;
  Finding& f = add(found, Kind::jumping_steps, {},
                   {{"step", e.times.steps[e.steps[at]]},
                    {"after", Ns{std::llround(after)}},
                    {"before", Ns{std::llround(before)}},
                    {"share", Percent{100 * ns / e.step_ns}}});
  f.steps = {e.times.steps[e.steps[at]], e.times.steps[e.steps.back()]};
  f.cost = cost_of(e, ns, ns / 4);
  return after - before;
}

struct Longest {
  double ns = 0;
  const read::Process* on = nullptr;  // null: all ranks take about equally long
};

// Finds the rank with the longest step at a place. Without device times a step is as long as the
// hosts' mean, so a host that takes far longer is named with its own time.
Longest longest_at(const Evidence& e, const Lengths& all, std::size_t place) {
  Longest longest{.ns = all.ns[place]};
  if (e.times.known()) return longest;
  double least = 1.25 * longest.ns;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    const double ns = e.times.of(r)[e.steps[place]].length;
    if (!e.times.tells_pace(r) || ns <= least) continue;
    longest = {ns, e.times.ranks[r]};
    least = ns;
  }
  return longest;
}

// `left`: the lengths once the slow ranks found so far are mended.
void long_steps(const Evidence& e, const Lengths& all, const Lengths& left, Findings& found) {
  std::vector<std::size_t> steps;
  std::vector<double> lost;  // where that is known
  std::size_t at = 0;        // of the longest
  for (std::size_t i = 0; i < all.ns.size(); ++i) {
    if (!all.far_longer(i) || !left.far_longer(i)) continue;
    steps.push_back(i);
    if (all.ns[i] > all.ns[at]) at = i;
    const auto more = [&](std::size_t step) { return left.ns[step] - left.usual; };
    if (e.times.known()) {
      lost.push_back(more(i));
    } else if (i + 1 < left.ns.size()) {
      // A host that waits for its device in a step is no longer ahead of it in the next one.
      lost.push_back(more(i) + std::min(0.0, more(i + 1)));
    }
  }
  if (steps.empty() || steps.size() * 2 > all.ns.size()) return;
  const double ns =
      mean(lost) * static_cast<double>(steps.size()) / static_cast<double>(all.ns.size());
  if (ns < kLeastShare * e.step_ns) return;
  const bool host = e.times.hosts_may_run_ahead;
  // The first steps of any job warm up. That matters only if it takes most of the time.
  const bool warms_up = all.warming_up() == steps.size() && ns < kMostOfTime * e.step_ns;
  const bool costs = !host && !warms_up;
  const std::vector<HoldsUp> held_up_by = who_holds_up(e, all, steps);
  const Longest most = longest_at(e, all, at);
  const std::size_t period = host || steps.size() < kFewestOfPeriod ? 0 : period_of(e, steps);
  Places ranks;
  for (const HoldsUp& its : held_up_by) {
    ranks.insert(ranks.end(), its.ranks.begin(), its.ranks.end());
  }
  Finding& f =
      add(found, period != 0 ? Kind::periodic_steps : Kind::long_steps, processes_of(e, ranks),
          {{"share", costs ? std::optional(Percent{100 * ns / e.step_ns}) : std::nullopt},
           {"host", host},
           {"host_of", std::nullopt},
           {"which", first_numbers_of(e, steps)},
           {"by_nobody", !host && held_up_by.empty()},
           {"steps", steps.size()},
           {"of_steps", all.ns.size()},
           {"others", all.ns.size() - steps.size()},
           {"period", ordinal(period)},
           {"first", e.times.steps[e.steps[steps.front()]]},
           {"longest", Ns{std::llround(most.ns)}},
           {"on", most.on == nullptr ? std::nullopt : std::optional(most.on)},
           {"at", steps.size() > 1 ? std::optional(e.times.steps[e.steps[at]]) : std::nullopt},
           {"held_up_by", facts_of(e, held_up_by, steps.size())},
           {"usual", Ns{std::llround(all.usual)}}});
  f.steps = {e.times.steps[e.steps[steps.front()]], e.times.steps[e.steps[steps.back()]]};
  f.in_steps = steps_of(e, steps);
  if (costs) f.cost = cost_of(e, ns, all.width);
  if (!e.times.known()) return;
  if (!held_up_by.empty()) {
    const bool longest = held_up_by.size() == 1 && held_up_by.front().longest == at;
    tell_where_it_holds_up(e, held_up_by.front(), longest, f);
  }
  tell_copies_of_steps(e, every_rank(e), steps, f);
  tell_calls_of_steps(e, steps, f);
}

}  // namespace

void step_series(const Evidence& e, Findings& found) {
  if (e.steps.size() < kFewest) return;
  Lengths all = lengths_of(e);
  Lengths left = lengths_of(e, true);
  const Drift drift = drift_of(left.ns);
  const std::size_t at = jump_of(left, drift.slope);
  // Both as measured and once the slow ranks are mended, which may shorten some steps alone.
  const bool jumps =
      at != 0 && std::max(chance_of_jump(all.ns, at), chance_of_jump(left.ns, at)) < kChance;
  if (const double ns = jumps ? tell_jump(e, left, at, found) : 0; ns != 0) {
    for (Lengths* lengths : {&all, &left}) lengths->shorten(at, ns);
  }
  long_steps(e, all, left, found);
  const auto times = static_cast<double>(left.ns.size() - 1);
  const double grown = drift.slope * times;
  const double least = drift.least * times;
  if (jumps || least < 0.05 * left.usual) return;
  Finding& f = add(found, Kind::drifting_steps, {},
                   {{"grown", Ns{std::llround(grown)}},
                    {"share", Percent{100 * grown / left.usual}},
                    {"of_steps", left.ns.size()}});
  f.cost = cost_of(e, grown / 2, (grown - least) / 2);
}

}  // namespace tprof::why
