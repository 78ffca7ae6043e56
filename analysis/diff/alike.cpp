#include "diff/alike.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tprof::diff {
namespace {

constexpr long double kMoreSteps = 1.5;

}  // namespace

bool same(long double a, long double b) {
  const long double doubt = 8 * std::numeric_limits<long double>::epsilon();
  return std::abs(a - b) <= doubt * std::max(std::abs(a), std::abs(b));
}

long double most_frequent(std::vector<long double> ratios) {
  std::ranges::sort(ratios);
  long double found = 1;
  std::ptrdiff_t most = 0;
  for (auto from = ratios.begin(); from != ratios.end();) {
    const auto to =
        std::find_if(from, ratios.end(), [&](long double r) { return !same(r, *from); });
    const bool one = same(*from, 1);
    if (to - from > most || (one && to - from == most)) {
      most = to - from;
      found = one ? 1 : *from;
    }
    from = to;
  }
  return found;
}

std::optional<Unlike> unlike(const Run& a, const Run& b, const std::vector<Often>& kinds) {
  if (a.steps.empty() || b.steps.empty()) return std::nullopt;
  long double ratio = 0;
  std::vector<long double> longer;
  for (const Often& o : kinds) {
    if (stats::once_for_several(o.kind.bucket) || o.step_a == 0 || o.step_b == 0) continue;
    const long double r = o.step_a / o.step_b;
    if (ratio != 0 && !same(r, ratio)) return std::nullopt;
    ratio = r;
    longer.push_back(o.total_b / o.total_a);
  }
  if (ratio == 0) return std::nullopt;
  const Unlike u{.in_a = ratio > 1, .times = std::max(ratio, 1 / ratio)};
  if (u.times < 2 || !same(u.times, std::round(u.times))) return std::nullopt;
  // If as many steps were made, each has more work: a larger batch is a change of the step.
  const Run& small = u.in_a ? b : a;
  const Run& large = u.in_a ? a : b;
  if (small.whole_steps) return std::nullopt;
  const auto steps = [](const Run& run) { return static_cast<long double>(run.steps_seen); };
  if (steps(small) < kMoreSteps * steps(large)) return std::nullopt;
  Unlike found = u;
  found.times = std::round(u.times);
  found.longer = most_frequent(std::move(longer));
  return found;
}

}  // namespace tprof::diff
