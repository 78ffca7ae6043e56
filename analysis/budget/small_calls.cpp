#include "budget/small_calls.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace tprof::budget {
namespace {

constexpr std::size_t kMostKinds = 16;  // as each subset of them may be tried

struct Kind {
  Key key;
  Moved all;
};

// The bytes that so many calls of a kind may have, by their size class: the others have the rest.
Range bytes_of_some(const Kind& kind, double calls) {
  const auto c = static_cast<int>(kind.key.bytes_class);
  const double least = c < 0 ? 0 : std::ldexp(1, c);
  const double most = c < 0 ? 0 : std::ldexp(2, c) - 1;
  const double others = kind.all.calls - calls;
  return {std::max(calls * least, kind.all.bytes - others * most),
          std::min(calls * most, kind.all.bytes - others * least)};
}

class Filler {
 public:
  Filler(const Figures& small, const Range& calls, const Range& bytes)
      : calls_(calls), bytes_(bytes) {
    for (const auto& [key, moved] : small) {
      if (moved.bytes > 0) kinds_.push_back({key, moved});
    }
    // Norms and losses are the smallest.
    std::ranges::stable_sort(kinds_, std::ranges::greater{},
                             [](const Kind& k) { return k.key.bytes_class; });
    if (kinds_.size() > kMostKinds) kinds_.resize(kMostKinds);
    rest_.resize(kinds_.size() + 1);
    for (std::size_t i = kinds_.size(); i-- > 0;) (rest_[i] = rest_[i + 1]) += kinds_[i].all;
  }

  // Looks at the kinds from `i` on. `some`: one kind may give a part of its calls.
  bool find(std::size_t i, const Moved& taken, bool some) {
    if (calls_.holds(taken.calls) && bytes_.holds(taken.bytes)) return taken.calls > 0;
    if (i == kinds_.size() || taken.calls > calls_.most || taken.bytes > bytes_.most) return false;
    if (taken.bytes + rest_[i].bytes < bytes_.least) return false;
    if (taken.calls + rest_[i].calls < calls_.least) return false;
    Moved with = taken;
    with += kinds_[i].all;
    if (find(i + 1, with, some)) return take(i, kinds_[i].all);
    if (some && take_some(i, taken)) return true;
    return find(i + 1, taken, some);
  }

  Figures taken() && { return std::move(taken_); }

 private:
  bool take(std::size_t i, const Moved& moved) {
    taken_[kinds_[i].key] = moved;
    return true;
  }
  bool take_some(std::size_t i, const Moved& taken) {
    const Moved& all = kinds_[i].all;
    for (double n = 1; n < all.calls; ++n) {
      if (!calls_.holds(taken.calls + n)) continue;
      const Range may = bytes_of_some(kinds_[i], n);
      const double bytes = std::max(may.least, bytes_.least - taken.bytes);
      if (bytes > std::min(may.most, bytes_.most - taken.bytes)) continue;
      return take(i, {n, bytes, all.elements * bytes / all.bytes});
    }
    return false;
  }

  Range calls_;  // that are missing
  Range bytes_;
  std::vector<Kind> kinds_;
  std::vector<Moved> rest_;  // of the kinds from each on
  Figures taken_;
};

}  // namespace

std::optional<Figures> fill(const Figures& small, const Moved& moved, const Range& calls,
                            const Range& bytes, double most) {
  const bool under = moved.calls < calls.least || moved.bytes < bytes.least;
  if (!under || moved.calls > calls.most || moved.bytes > bytes.most) return std::nullopt;
  const auto missing = [](const Range& r, double n) {
    return Range{std::max(0.0, r.least - n), r.most - n};
  };
  Range missing_calls = missing(calls, moved.calls);
  missing_calls.most = std::min(missing_calls.most, most);
  for (const bool some : {false, true}) {
    Filler filler(small, missing_calls, missing(bytes, moved.bytes));
    if (filler.find(0, {}, some)) return std::move(filler).taken();
  }
  return std::nullopt;
}

}  // namespace tprof::budget
