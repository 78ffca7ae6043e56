// Steps that take longer than the others: a few, every n-th one, or more and more.
#include <algorithm>
#include <cmath>

#include "why/causes.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

using diagnose::Finding;
using diagnose::Findings;
using diagnose::Kind;
using diagnose::Ns;
using diagnose::Percent;

constexpr double kLonger = 1.25;  // of the median
constexpr std::size_t kFewest = 8;
constexpr std::size_t kFewestForDrift = 20;

struct Series {
  std::vector<double> ns;
  double usual = 0;
  double width = 0;  // of the usual steps: as a standard deviation of a normal distribution
};

Series series_of(const Evidence& e) {
  Series all;
  for (const std::size_t s : e.steps) {
    std::vector<double> of_ranks;
    for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
      of_ranks.push_back(e.times.of(r)[s].length);
    }
    all.ns.push_back(median(std::move(of_ranks)));
  }
  all.usual = median(all.ns);
  std::vector<double> apart;
  for (const double x : all.ns) apart.push_back(std::abs(x - all.usual));
  all.width = 1.4826 * median(apart);
  return all;
}

// The distance between them, if they all are as far apart as the first two.
std::size_t period_of(const std::vector<std::size_t>& steps) {
  if (steps.size() < 3) return 0;
  const std::size_t n = steps[1] - steps[0];
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i] - steps[i - 1] != n) return 0;
  }
  return n > 1 ? n : 0;
}

// The slope of Theil and Sen, and how far Kendall's count of pairs in order is from chance, in
// standard deviations (Mann 1945).
struct Drift {
  double slope = 0;
  double certainty = 0;
};
Drift drift_of(const std::vector<double>& series) {
  const std::size_t every = series.size() / 512 + 1;
  std::vector<double> x;
  for (std::size_t i = 0; i < series.size(); i += every) x.push_back(series[i]);
  std::vector<double> slopes;
  double in_order = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = i + 1; j < x.size(); ++j) {
      slopes.push_back((x[j] - x[i]) / static_cast<double>((j - i) * every));
      in_order += x[j] > x[i] ? 1 : x[j] < x[i] ? -1 : 0;
    }
  }
  const auto n = static_cast<double>(x.size());
  return {median(std::move(slopes)), in_order / std::sqrt(n * (n - 1) * (2 * n + 5) / 18)};
}

void long_steps(const Evidence& e, const Series& all, Findings& found) {
  std::vector<std::size_t> steps;
  double ns = 0;
  double longest = 0;
  for (std::size_t i = 0; i < all.ns.size(); ++i) {
    if (all.ns[i] < std::max(kLonger * all.usual, all.usual + 8 * all.width)) continue;
    steps.push_back(i);
    ns += all.ns[i] - all.usual;
    longest = std::max(longest, all.ns[i]);
  }
  if (steps.empty() || steps.size() * 2 > all.ns.size()) return;
  ns /= static_cast<double>(all.ns.size());
  if (ns < kLeastShare * e.step_ns) return;
  const std::size_t period = period_of(steps);
  Finding& f = add(found, period != 0 ? Kind::periodic_steps : Kind::long_steps, {},
                   {{"share", Percent{100 * ns / e.step_ns}},
                    {"steps", steps.size()},
                    {"of_steps", all.ns.size()},
                    {"period", period},
                    {"first", e.times.steps[e.steps[steps.front()]]},
                    {"longest", Ns{std::llround(longest)}},
                    {"usual", Ns{std::llround(all.usual)}}});
  f.steps = {e.times.steps[e.steps[steps.front()]], e.times.steps[e.steps[steps.back()]]};
  f.cost = cost_of(e, ns, all.width);
}

}  // namespace

void step_series(const Evidence& e, Findings& found) {
  if (e.steps.size() < kFewest) return;
  const Series all = series_of(e);
  long_steps(e, all, found);
  if (all.ns.size() < kFewestForDrift) return;
  const Drift drift = drift_of(all.ns);
  const double grown = drift.slope * static_cast<double>(all.ns.size() - 1);
  if (drift.certainty < 5 || grown < 0.05 * all.usual) return;
  Finding& f = add(found, Kind::drifting_steps, {},
                   {{"grown", Ns{std::llround(grown)}},
                    {"share", Percent{100 * grown / all.usual}},
                    {"of_steps", all.ns.size()}});
  f.cost = cost_of(e, grown / 2, grown / 4);
}

}  // namespace tprof::why
