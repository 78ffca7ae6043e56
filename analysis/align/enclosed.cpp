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

// Returns the shift for `pairs` entries, from these on; nullopt if there is none.
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

// Keeps the shift nearest to 0, and how far the next one is.
class Nearest {
 public:
  void take(const Shift& shift) {
    const std::int64_t size = size_of(shift.ns);
    if (best_ && size >= size_of(best_->ns)) return take(size);
    if (best_) take(size_of(best_->ns));
    best_ = shift;
  }
  void take(std::int64_t size) { next_ = std::min(next_, size); }
  void take(std::int64_t least_ns, std::int64_t most_ns) {
    if (least_ns <= most_ns) take(size_of(std::clamp(std::int64_t{0}, least_ns, most_ns)));
  }

  const std::optional<Shift>& best() const { return best_; }
  bool clear() const { return next_ / kMuchFarther >= size_of(best_->ns); }

 private:
  std::optional<Shift> best_;
  std::int64_t next_ = kFarthest;
};

// Takes the shifts with which `outer` overlaps a stretch, in all ways.
void meet(const std::vector<Stay>& inner, const std::vector<Stay>& outer, bool whole,
          Nearest& nearest) {
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
    if (const auto shift = of_pairs(inner.data() + from, outer.data() + skipped, pairs)) {
      nearest.take(*shift);
    }
  }
}

// Takes the shifts with which `outer` overlaps no stretch: between two of them, or beyond them.
void miss(const std::vector<std::vector<Stay>>& inner, const std::vector<Stay>& outer,
          Nearest& nearest) {
  const std::int64_t begin = outer.front().begin_ns;
  const std::int64_t end = std::ranges::max(outer, {}, &Stay::end_ns).end_ns;
  std::int64_t least = -kFarthest;
  for (const std::vector<Stay>& stretch : inner) {
    nearest.take(least, stretch.front().begin_ns - end);
    least = std::ranges::max(stretch, {}, &Stay::end_ns).end_ns - begin;
  }
  nearest.take(least, kFarthest);
}

}  // namespace

std::optional<Shift> enclosing_shift(const std::vector<std::vector<Stay>>& inner,
                                     const std::vector<Stay>& outer, bool whole) {
  Nearest nearest;
  std::size_t longest = 0;
  for (const std::vector<Stay>& stretch : inner) {
    meet(stretch, outer, whole, nearest);
    longest = std::max(longest, stretch.size());
  }
  if (!nearest.best() || nearest.best()->ns == 0) return nearest.best();
  if (!whole) miss(inner, outer, nearest);
  // One of them must lie in the other as a whole. Otherwise only their ends would meet.
  if (nearest.best()->pairs < std::min(longest, outer.size())) return std::nullopt;
  return nearest.clear() ? nearest.best() : std::nullopt;
}

}  // namespace tprof::align
