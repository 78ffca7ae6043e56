#include "align/enclosed.h"

#include <algorithm>
#include <limits>

namespace tprof::align {
namespace {

constexpr std::int64_t kFarthest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMuchFarther = 10;

bool same(const Stay& a, const Stay& b) {
  const bool alike = a.elements == 0 || b.elements == 0 || a.elements == b.elements;
  return a.kind == b.kind && alike;
}

std::int64_t size_of(std::int64_t ns) {
  return ns < 0 ? -ns : ns;
}

// Returns the shift for `pairs` entries from these on; nullopt if there is none.
std::optional<Shift> of_pairs(const Stay* inner, const Stay* outer, std::size_t pairs) {
  Shift shift{pairs, 0, -kFarthest, kFarthest};
  for (std::size_t i = 0; i < pairs; ++i) {
    if (!same(inner[i], outer[i])) return std::nullopt;
    shift.least_ns = std::max(shift.least_ns, inner[i].end_ns - outer[i].end_ns);
    shift.most_ns = std::min(shift.most_ns, inner[i].begin_ns - outer[i].begin_ns);
    if (shift.least_ns > shift.most_ns) return std::nullopt;
  }
  shift.ns = std::clamp(std::int64_t{0}, shift.least_ns, shift.most_ns);
  return shift;
}

// Returns all shifts with which `outer` overlaps a stretch.
void meet(const std::vector<Stay>& inner, const std::vector<Stay>& outer, bool whole,
          std::vector<Shift>& met) {
  const auto n = static_cast<std::ptrdiff_t>(inner.size());
  const auto m = static_cast<std::ptrdiff_t>(outer.size());
  // `at` is the index of the inner entry that the first outer one matches. Entries beyond either
  // end have an unknown partner.
  const std::ptrdiff_t least = whole ? 0 : 1 - m;
  const std::ptrdiff_t most = whole ? n - m : n - 1;
  for (std::ptrdiff_t at = least; at <= most; ++at) {
    const std::ptrdiff_t skipped = std::max<std::ptrdiff_t>(0, -at);
    const std::ptrdiff_t from = at + skipped;
    const auto pairs = static_cast<std::size_t>(std::min(m - skipped, n - from));
    const auto shift = of_pairs(inner.data() + from, outer.data() + skipped, pairs);
    if (shift) met.push_back(*shift);
  }
}

// Returns the smallest distance from 0 of a shift with which `outer` overlaps no stretch.
std::int64_t nearest_miss(const std::vector<std::vector<Stay>>& inner,
                          const std::vector<Stay>& outer) {
  const auto end_of = [](const std::vector<Stay>& all) {
    return std::ranges::max(all, {}, &Stay::end_ns).end_ns;
  };
  std::int64_t nearest = kFarthest;
  std::int64_t least = -kFarthest;
  const auto take = [&](std::int64_t most) {
    if (least > most) return;
    nearest = std::min(nearest, size_of(std::clamp(std::int64_t{0}, least, most)));
  };
  for (const std::vector<Stay>& stretch : inner) {
    take(stretch.front().begin_ns - end_of(outer));
    least = end_of(stretch) - outer.front().begin_ns;
  }
  take(kFarthest);
  return nearest;
}

}  // namespace

std::optional<Shift> enclosing_shift(const std::vector<std::vector<Stay>>& inner,
                                     const std::vector<Stay>& outer, bool whole) {
  std::vector<Shift> met;
  std::size_t longest = 0;
  for (const std::vector<Stay>& stretch : inner) {
    meet(stretch, outer, whole, met);
    longest = std::max(longest, stretch.size());
  }
  if (met.empty()) return std::nullopt;
  const auto size = [](const Shift& shift) { return size_of(shift.ns); };
  std::ranges::stable_sort(met, {}, size);
  const Shift& best = met.front();
  if (best.ns == 0) return best;
  // One must contain the whole other one; else only their ends would overlap.
  if (best.pairs < std::min(longest, outer.size())) return std::nullopt;
  const std::int64_t next = std::min(met.size() > 1 ? size(met[1]) : kFarthest,
                                     whole ? kFarthest : nearest_miss(inner, outer));
  return next / kMuchFarther >= size(best) ? std::optional(best) : std::nullopt;
}

}  // namespace tprof::align
