#include "diff/alike.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tprof::diff {
namespace {

constexpr long double kMoreSteps = 1.5;

bool once_for_several(Bucket bucket) {
  return bucket == Bucket::ALLREDUCE || bucket == Bucket::REDUCE || bucket == Bucket::RESHARDING ||
         bucket == Bucket::BROADCAST;
}

}  // namespace

std::optional<Unlike> unlike(const Run& a, const Run& b, const std::vector<Often>& kinds) {
  if (a.steps.empty() || b.steps.empty()) return std::nullopt;
  long double ratio = 0;
  std::map<long double, std::size_t> votes;
  for (const Often& o : kinds) {
    if (once_for_several(o.kind.bucket) || o.step_a == 0 || o.step_b == 0) continue;
    if (ratio != 0 && o.step_a / o.step_b != ratio) return std::nullopt;
    ratio = o.step_a / o.step_b;
    ++votes[o.total_b / o.total_a];
  }
  if (ratio == 0) return std::nullopt;
  const Unlike u{.in_a = ratio > 1, .times = std::max(ratio, 1 / ratio)};
  if (u.times < 2 || std::abs(u.times - std::round(u.times)) > 1e-9L) return std::nullopt;
  // If as many steps were made, each has more work: a larger batch is a change of the step.
  const Run& small = u.in_a ? b : a;
  const Run& large = u.in_a ? a : b;
  if (small.whole_steps) return std::nullopt;
  const auto steps = [](const Run& run) { return static_cast<long double>(run.steps_seen); };
  if (steps(small) < kMoreSteps * steps(large)) return std::nullopt;
  Unlike found = u;
  found.times = std::round(u.times);
  found.longer = std::ranges::max_element(votes, {}, [](const auto& v) { return v.second; })->first;
  return found;
}

}  // namespace tprof::diff
