#include "steps/anchor.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace tprof::steps {
namespace {

constexpr std::size_t kBefore[] = {0, 1, 2, 4, 8, 16, 32};  // lengths of context to try
constexpr std::size_t kNear = 4;                            // contexts up to this are short

class Finder {
 public:
  explicit Finder(const Order& text) : text_(text) {}

  // Returns the reduction by which a period is counted. If it occurs several times in a period,
  // what came before it tells which of them is meant.
  std::optional<Anchor> choose() const {
    std::optional<Anchor> first;
    for (const std::size_t before : kBefore) {
      std::optional<Anchor> chosen = choose(before);
      // A lone operation that repeats is not a step, since no data come in for it.
      if (!chosen || chosen->from() == chosen->to() || !reduces_all(*chosen)) continue;
      if (text_.any_data()) {
        if (brings_data(*chosen)) return chosen;
      } else if (3 * chosen->alike < 2 * (chosen->at.size() - 1)) {
        return std::nullopt;  // layers, of steps that differ otherwise
      } else if (!first) {
        first = std::move(chosen);
      } else if (before <= kNear && 4 * chosen->at.size() <= 3 * first->at.size()) {
        return std::nullopt;  // layers and steps, or steps and what is done every few steps
      }
    }
    return first;
  }

  // Returns the reduction after which a period has its longest part without one (the next forward
  // pass).
  Anchor last_reduction(const Anchor& a) const {
    struct Gap {
      std::size_t length = 0;
      bool data = false;
      std::size_t back = 0;  // from the end of the period to the reduction before the gap
      auto operator<=>(const Gap&) const = default;
    };
    Gap best;
    std::map<std::int64_t, std::vector<std::size_t>> by_comm;
    for (std::size_t i = a.from(); i <= a.to(); ++i) {
      if (text_.gradient(i)) by_comm[text_.symbol(i).comm].push_back(i);
    }
    const std::size_t length = a.to() - a.at[a.unit];
    for (auto& [comm, at] : by_comm) {
      for (std::size_t k = 0; k < at.size(); ++k) {
        const std::size_t here = at[k];
        const std::size_t next = k + 1 < at.size() ? at[k + 1] : at[0] + length;
        bool data = false;
        for (std::size_t i = here + 1; i < next; ++i) {
          data = data || text_.data_in(i <= a.to() ? i : i - length);
        }
        best = std::max(best, Gap{next - here, data, a.to() - here});
      }
    }
    return best.back == 0 ? a : moved_to(a, a.to() - best.back);
  }

 private:
  // Makes an anchor if what lies between two occurrences is often the same, and finds where it is.
  std::optional<Anchor> as_anchor(std::vector<std::size_t> at) const {
    if (at.size() < kFewest) return std::nullopt;
    struct Seen {
      std::size_t times = 0;
      std::size_t last = 0;
    };
    std::unordered_map<std::uint64_t, Seen> segments;
    for (std::size_t k = 0; k + 1 < at.size(); ++k) {
      Seen& seen = segments[text_.ordered(at[k] + 1, at[k + 1])];
      ++seen.times;
      seen.last = k;
    }
    std::size_t most = 0;
    for (const auto& [hash, seen] : segments) most = std::max(most, seen.times);
    if (most < 2 || 3 * most < at.size() - 1) return std::nullopt;
    // Takes the shorter of two that are as frequent (with an evaluation after every other step).
    std::optional<std::size_t> unit;
    for (const auto& [hash, seen] : segments) {
      if (seen.times < 2 || seen.times + 1 < most) continue;
      const auto length = [&](std::size_t k) { return std::pair(at[k + 1] - at[k], k); };
      if (!unit || length(seen.last) < length(*unit)) unit = seen.last;
    }
    return Anchor{std::move(at), *unit, most};
  }

  std::optional<Anchor> choose(std::size_t before) const {
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> groups;
    for (std::size_t i = before; i < text_.size(); ++i) {
      if (text_.gradient(i)) groups[text_.ordered(i - before, i + 1)].push_back(i);
    }
    std::vector<Anchor> good;
    for (auto& [hash, at] : groups) {
      if (auto anchor = as_anchor(std::move(at))) good.push_back(std::move(*anchor));
    }
    // The most frequent first; among equal ones, the first to occur.
    std::ranges::sort(good, [](const Anchor& a, const Anchor& b) {
      return std::pair(b.at.size(), a.at[0]) < std::pair(a.at.size(), b.at[0]);
    });
    std::optional<Anchor> chosen;
    for (Anchor& anchor : good) {
      if (!chosen || contains(anchor, *chosen)) chosen = std::move(anchor);
    }
    return chosen;
  }

  bool brings_data(const Anchor& a) const {
    for (std::size_t i = a.from(); i < a.to(); ++i) {
      if (text_.data_in(i)) return true;
    }
    return false;
  }

  // True if all that is reduced again and again is reduced in the period. Else it is a part of one.
  bool reduces_all(const Anchor& a) const {
    std::set<std::uint32_t> within(text_.begin() + static_cast<std::ptrdiff_t>(a.from()),
                                   text_.begin() + static_cast<std::ptrdiff_t>(a.to() + 1));
    std::map<std::uint32_t, std::size_t> others;
    for (std::size_t i = a.at.front(); i < a.at.back(); ++i) {
      if (text_.gradient(i) && !within.contains(text_[i]) && ++others[text_[i]] == kFewest)
        return false;
    }
    return true;
  }

  // True if the coarser repeat is a step, and the finer one is a layer of it. Then data come in for
  // the coarser only, or it reduces on communicators that the finer does not.
  bool contains(const Anchor& coarser, const Anchor& finer) const {
    if (4 * coarser.at.size() > 3 * finer.at.size()) return false;  // as often, except at the ends
    std::set<std::int64_t> comms;
    std::set<std::uint32_t> copies;
    for (std::size_t i = finer.from(); i <= finer.to(); ++i) {
      if (text_.gradient(i)) comms.insert(text_.symbol(i).comm);
      if (text_.data_in(i)) copies.insert(text_[i]);
    }
    for (std::size_t i = coarser.from(); i <= coarser.to(); ++i) {
      if (text_.gradient(i) && !comms.contains(text_.symbol(i).comm)) return true;
      if (text_.data_in(i) && !copies.contains(text_[i])) return true;
    }
    return false;
  }

  // Returns the anchor at another place of the period, with enough of what is before it to tell it
  // from the others.
  Anchor moved_to(const Anchor& a, std::size_t place) const {
    for (const std::size_t before : kBefore) {
      if (before > place) break;
      const std::uint64_t gram = text_.ordered(place - before, place + 1);
      std::vector<std::size_t> at;
      std::size_t in_period = 0;
      for (std::size_t i = before; i < text_.size(); ++i) {
        if (text_[i] != text_[place] || text_.ordered(i - before, i + 1) != gram) continue;
        at.push_back(i);
        if (a.at[a.unit] < i && i <= a.to()) ++in_period;
      }
      if (in_period != 1) continue;
      if (auto moved = as_anchor(std::move(at))) return std::move(*moved);
    }
    return a;
  }

  const Order& text_;
};

}  // namespace

std::optional<Anchor> find_anchor(const Order& text) {
  const Finder finder(text);
  const std::optional<Anchor> chosen = finder.choose();
  if (!chosen) return std::nullopt;
  Anchor last = finder.last_reduction(*chosen);
  if (last.at.size() < kFewest) return std::nullopt;
  return last;
}

}  // namespace tprof::steps
