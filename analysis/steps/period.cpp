#include "steps/period.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "interpose/base/hash.h"

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;
using Text = std::vector<std::uint32_t>;  // symbols

constexpr std::size_t kFewest = 3;                          // occurrences that make a period
constexpr std::size_t kBefore[] = {0, 1, 2, 4, 8, 16, 32};  // that tell occurrences apart
constexpr std::uint64_t kScalarBytes = 64;      // copies of less bring flags and scales, not data
constexpr std::uint64_t kSmallCopy = 8;         // times smaller than the largest: no batch
constexpr std::size_t kNear = 4;                // of kBefore
constexpr std::uint64_t kSmallReduction = 256;  // times smaller than the largest: a norm, a metric

std::uint64_t hash_of(std::uint64_t h, std::uint32_t symbol) {
  return mix64(h ^ (symbol + 1));
}

// Hashes of any part of a text: equal for equal parts, in their order or in any.
class Hashes {
 public:
  explicit Hashes(const Text& text) : ordered_(1), sums_(1), powers_{1} {
    for (const std::uint32_t symbol : text) {
      const std::uint64_t h = hash_of(0, symbol);
      ordered_.push_back(ordered_.back() * kBase + h);
      sums_.push_back(sums_.back() + h);
      powers_.push_back(powers_.back() * kBase);
    }
  }
  std::uint64_t ordered(std::size_t from, std::size_t to) const {
    return mix64((ordered_[to] - ordered_[from] * powers_[to - from]) ^ (to - from));
  }
  std::uint64_t any_order(std::size_t from, std::size_t to) const {
    return sums_[to] - sums_[from];
  }

 private:
  static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15;
  std::vector<std::uint64_t> ordered_;
  std::vector<std::uint64_t> sums_;
  std::vector<std::uint64_t> powers_;
};

// Occurrences of one reduction, told from others of its kind by what stood before it.
struct Anchor {
  std::vector<std::size_t> at;
  std::size_t unit = 0;  // index into `at`: what follows it up to the next is what mostly does
  std::size_t from() const { return at[unit] + 1; }
  std::size_t to() const { return at[unit + 1]; }
};

class Finder {
 public:
  Finder(const Sequence& s, bool copies, bool closed) : s_(s), closed_(closed) {
    for (std::size_t i = 0; i < s.operations.size(); ++i) {
      const std::uint32_t symbol = s.operations[i].symbol;
      if (!copies && s.symbols[symbol].kind == Kind::copy_in) continue;
      text_.push_back(symbol);
      place_.push_back(i);
    }
    find_gradients();
    find_batches();
  }

  Period run() {
    Period p;
    if (gradients_ < kFewest) {
      p.why = "fewer than three reductions of gradients";
      return p;
    }
    const Hashes hashes(text_);
    std::optional<Anchor> anchor = choose(hashes);
    if (!anchor) {
      p.why = "what was called does not repeat";
      return p;
    }
    const Anchor a = last_reduction(*anchor, hashes);
    if (a.at.size() < kFewest) {
      p.why = "what was called does not repeat";
      return p;
    }
    place_steps(a, hashes, p);
    return p;
  }

 private:
  const Symbol& symbol(std::size_t i) const { return s_.symbols[text_[i]]; }
  bool gradient(std::size_t i) const { return gradient_[text_[i]]; }
  bool copy_in(std::size_t i) const { return symbol(i).kind == Kind::copy_in; }
  bool data_in(std::size_t i) const { return copy_in(i) && symbol(i).bytes >= batch_bytes_; }

  // Reductions that are large enough to be of gradients.
  void find_gradients() {
    std::uint64_t largest = 0;
    for (const Symbol& symbol : s_.symbols) {
      if (symbol.kind == Kind::reduction) largest = std::max(largest, symbol.bytes);
    }
    for (const Symbol& symbol : s_.symbols) {
      gradient_.push_back(symbol.kind == Kind::reduction && symbol.bytes > kScalarBytes &&
                          symbol.bytes >= largest / kSmallReduction);
    }
    for (std::size_t i = 0; i < text_.size(); ++i) gradients_ += gradient(i) ? 1U : 0U;
  }

  // Batches of data are among the largest copies that come again and again while it trains.
  void find_batches() {
    std::size_t first = 0;
    while (first < text_.size() && !gradient(first)) ++first;
    std::map<std::uint32_t, std::size_t> times;
    std::uint64_t largest = 0;
    for (std::size_t i = first; i < text_.size(); ++i) {
      if (copy_in(i) && ++times[text_[i]] == kFewest - 1) {
        largest = std::max(largest, symbol(i).bytes);
      }
    }
    any_data_ = largest >= kScalarBytes;
    batch_bytes_ = std::max(kScalarBytes, largest / kSmallCopy);
  }

  // Of the occurrences: whether what is between two is often the same, and where it is.
  std::optional<Anchor> as_anchor(std::vector<std::size_t> at, const Hashes& hashes) const {
    if (at.size() < kFewest) return std::nullopt;
    struct Seen {
      std::size_t times = 0;
      std::size_t last = 0;
    };
    std::unordered_map<std::uint64_t, Seen> segments;
    for (std::size_t k = 0; k + 1 < at.size(); ++k) {
      Seen& seen = segments[hashes.ordered(at[k] + 1, at[k + 1])];
      ++seen.times;
      seen.last = k;
    }
    std::size_t most = 0;
    for (const auto& [hash, seen] : segments) most = std::max(most, seen.times);
    if (most < 2 || 3 * most < at.size() - 1) return std::nullopt;
    // Of two that are as frequent (an evaluation behind every other step) the shorter.
    std::optional<std::size_t> unit;
    for (const auto& [hash, seen] : segments) {
      if (seen.times < 2 || seen.times + 1 < most) continue;
      const auto length = [&](std::size_t k) { return std::pair(at[k + 1] - at[k], k); };
      if (!unit || length(seen.last) < length(*unit)) unit = seen.last;
    }
    return Anchor{std::move(at), *unit};
  }

  // The reduction that a period is counted by; with more of what stood before it where it alone is
  // in a period several times.
  std::optional<Anchor> choose(const Hashes& hashes) const {
    std::optional<Anchor> first;
    for (const std::size_t before : kBefore) {
      std::optional<Anchor> chosen = choose(before, hashes);
      // A lone operation that repeats is a step only where data come in for each.
      if (!chosen || chosen->from() == chosen->to() || !reduces_all(*chosen)) continue;
      if (any_data_) {
        if (brings_data(*chosen)) return chosen;
      } else if (!first) {
        first = std::move(chosen);
      } else if (before <= kNear && 4 * chosen->at.size() <= 3 * first->at.size()) {
        return std::nullopt;  // layers and steps, or steps and what is done every so many of them
      }
    }
    return first;
  }

  std::optional<Anchor> choose(std::size_t before, const Hashes& hashes) const {
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> groups;
    for (std::size_t i = before; i < text_.size(); ++i) {
      if (gradient(i)) groups[hashes.ordered(i - before, i + 1)].push_back(i);
    }
    std::vector<Anchor> good;
    for (auto& [hash, at] : groups) {
      if (auto anchor = as_anchor(std::move(at), hashes)) good.push_back(std::move(*anchor));
    }
    // The finest first; of equal ones the first to occur.
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
      if (data_in(i)) return true;
    }
    return false;
  }

  // Whether all that is reduced again and again is reduced in the period: else it is a part of one.
  bool reduces_all(const Anchor& a) const {
    std::set<std::uint32_t> within(text_.begin() + static_cast<std::ptrdiff_t>(a.from()),
                                   text_.begin() + static_cast<std::ptrdiff_t>(a.to() + 1));
    std::map<std::uint32_t, std::size_t> others;
    for (std::size_t i = a.at.front(); i < a.at.back(); ++i) {
      if (gradient(i) && !within.contains(text_[i]) && ++others[text_[i]] == kFewest) return false;
    }
    return true;
  }

  // Whether the coarser repeat is what a step is, and the finer one is a layer of it: data come in
  // for the coarser only, or it reduces on communicators that the finer does not.
  bool contains(const Anchor& coarser, const Anchor& finer) const {
    if (4 * coarser.at.size() > 3 * finer.at.size()) return false;  // as often, but for the ends
    std::set<std::int64_t> comms;
    std::set<std::uint32_t> copies;
    for (std::size_t i = finer.from(); i <= finer.to(); ++i) {
      if (gradient(i)) comms.insert(symbol(i).comm);
      if (data_in(i)) copies.insert(text_[i]);
    }
    for (std::size_t i = coarser.from(); i <= coarser.to(); ++i) {
      if (gradient(i) && !comms.contains(symbol(i).comm)) return true;
      if (data_in(i) && !copies.contains(text_[i])) return true;
    }
    return false;
  }

  // The reduction behind which a period has its longest part without one (the next forward pass).
  Anchor last_reduction(const Anchor& a, const Hashes& hashes) const {
    struct Gap {
      std::size_t length = 0;
      bool data = false;
      std::size_t back = 0;  // from the end of the period to the reduction before the gap
      auto operator<=>(const Gap&) const = default;
    };
    Gap best;
    std::map<std::int64_t, std::vector<std::size_t>> by_comm;
    for (std::size_t i = a.from(); i <= a.to(); ++i) {
      if (gradient(i)) by_comm[symbol(i).comm].push_back(i);
    }
    const std::size_t length = a.to() - a.at[a.unit];
    for (auto& [comm, at] : by_comm) {
      for (std::size_t k = 0; k < at.size(); ++k) {
        const std::size_t here = at[k];
        const std::size_t next = k + 1 < at.size() ? at[k + 1] : at[0] + length;
        bool data = false;
        for (std::size_t i = here + 1; i < next; ++i) {
          data = data || data_in(i <= a.to() ? i : i - length);
        }
        best = std::max(best, Gap{next - here, data, a.to() - here});
      }
    }
    return best.back == 0 ? a : moved_to(a, a.to() - best.back, hashes);
  }

  // The anchor at another place of the period, with as much before it as tells it from the others.
  Anchor moved_to(const Anchor& a, std::size_t place, const Hashes& hashes) const {
    for (const std::size_t before : kBefore) {
      if (before > place) break;
      const std::uint64_t gram = hashes.ordered(place - before, place + 1);
      std::vector<std::size_t> at;
      std::size_t in_period = 0;
      for (std::size_t i = before; i < text_.size(); ++i) {
        if (text_[i] != text_[place] || hashes.ordered(i - before, i + 1) != gram) continue;
        at.push_back(i);
        if (a.at[a.unit] < i && i <= a.to()) ++in_period;
      }
      if (in_period != 1) continue;
      if (auto moved = as_anchor(std::move(at), hashes)) return std::move(*moved);
    }
    return a;
  }

  // How many operations behind the last reduction still are of the step. Everywhere that a program
  // did something else between two steps, and where it ended, it had made at least these; what it
  // did then was not yet of the next.
  std::size_t behind_last_reduction(const Anchor& a) const {
    const std::size_t m = a.to() - a.from();
    const auto same_ahead = [&](std::size_t from, std::size_t to) {
      std::size_t n = 0;
      while (n < m && from + n < to && text_[from + n] == text_[a.from() + n]) ++n;
      return n;
    };
    std::size_t until_end = m;
    if (closed_) until_end = same_ahead(a.at.back() + 1, text_.size());
    std::size_t most = until_end;
    for (std::size_t k = 0; k + 1 < a.at.size(); ++k) {
      const std::size_t from = a.at[k] + 1;
      const std::size_t to = a.at[k + 1];
      if (to - from <= m) continue;
      const std::size_t ahead = same_ahead(from, to);
      // Something was put in, and both ends are as always.
      if (ahead + same_before(a, from, to) >= m) most = std::min(most, ahead);
    }
    // Where the first step is like the others, the program had done something else before it.
    const std::size_t least = m - same_before(a, 0, a.at[0]);
    // Norms and flags directly behind it, then up to where a batch comes in as for the first step.
    std::size_t n = 0;
    for (std::size_t i = 0; i < most && !data_in(a.from() + i); ++i) {
      const bool small = symbol(a.from() + i).kind == Kind::reduction && !gradient(a.from() + i);
      if (small) n = i + 1;
    }
    const std::uint32_t batch = text_[start_within(0, a.at[0], a)];
    const bool data = s_.symbols[batch].kind == Kind::copy_in;
    const bool told =
        least == most || (least < most && (!data || text_[a.from() + least] == batch));
    if (told) n = std::max(n, least);
    for (const std::size_t last : {most, until_end}) {
      for (std::size_t i = n; data && i < m && i <= last; ++i) {
        if (text_[a.from() + i] == batch) return i;
      }
    }
    return told || most == m ? n : most;
  }

  // Up to the operation at `to`, in the text behind `from`: how many are as in every period.
  std::size_t same_before(const Anchor& a, std::size_t from, std::size_t to) const {
    const std::size_t m = a.to() - a.from();
    std::size_t n = 0;
    while (n < m && n < to - from && text_[to - 1 - n] == text_[a.to() - 1 - n]) ++n;
    return n;
  }

  void place_steps(const Anchor& a, const Hashes& hashes, Period& p) const {
    const std::size_t m = a.to() - a.from();
    const std::size_t behind = behind_last_reduction(a);
    const std::size_t lead = m - behind;
    const std::uint64_t of_lead = hashes.any_order(a.to() - lead, a.to());
    const std::uint64_t of_rest = hashes.any_order(a.from(), a.from() + behind);
    std::vector<std::size_t> starts;
    std::vector<std::size_t> anchors;
    first_steps(a, lead, of_lead, hashes, starts, anchors, p.unclear_beginning);
    for (std::size_t k = 1; k < a.at.size(); ++k) {
      const std::size_t from = a.at[k - 1] + 1;
      const std::size_t to = a.at[k];
      const bool as_always = to - from >= lead && hashes.any_order(to - lead, to) == of_lead;
      starts.push_back(as_always ? to - lead : start_of_odd(a, from, to, lead, of_rest, hashes));
      anchors.push_back(to);
    }
    std::size_t end = a.at.back() + 1;
    const std::size_t left = text_.size() - end;
    if (left >= behind && hashes.any_order(end, end + behind) == of_rest) {
      end += behind;
    } else if (!closed_) {  // killed within what ends a step
      starts.pop_back();
      anchors.pop_back();
      end = a.at[a.at.size() - 2] + 1 + behind;
    }
    p.unclear_end = closed_ && volume(end, text_.size()) != 0;
    for (const std::size_t i : starts) p.starts.push_back(place_[i]);
    p.starts.push_back(end < place_.size() ? place_[end] : s_.operations.size());
    for (const std::size_t i : anchors) p.anchors.push_back(place_[i]);
    p.whole_steps = behind_is_optimizer(a, behind) || micro_batches(a, behind) > 1;
  }

  // Of a step that is not called as always, between the anchors before `from` and at `to`. What was
  // put in before it may leave things to it that it need not do again (after an evaluation FSDP2's
  // root is still gathered), so its first batch tells: the one before what is as always.
  std::size_t start_of_odd(const Anchor& a, std::size_t from, std::size_t to, std::size_t lead,
                           std::uint64_t of_rest, const Hashes& hashes) const {
    const std::size_t same = std::min(same_before(a, from, to), lead);
    const std::uint32_t first = lead == 0 ? text_[a.to()] : text_[a.to() - lead];
    if (s_.symbols[first].kind == Kind::copy_in) {
      const std::size_t before = to - same;
      const std::size_t near = std::min(before - from, 2 * (lead - same));
      for (std::size_t i = before; i-- > before - near;) {
        if (text_[i] == first) return i;
      }
    }
    const std::size_t behind = a.to() - a.from() - lead;
    const bool rest = to - from >= behind && hashes.any_order(from, from + behind) == of_rest;
    return rest ? from + behind : from;
  }

  // Elements of gradients that were reduced.
  std::uint64_t volume(std::size_t from, std::size_t to) const {
    std::uint64_t sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += gradient(i) ? symbol(i).count : 0;
    return sum;
  }

  // The first steps make and order their buckets anew (DDP) or fetch in another order (ZeRO-3):
  // then each is known by the gradients that it reduced, as many as every other.
  void first_steps(const Anchor& a, std::size_t lead, std::uint64_t of_lead, const Hashes& hashes,
                   std::vector<std::size_t>& starts, std::vector<std::size_t>& anchors,
                   bool& unclear) const {
    const std::uint64_t one = volume(a.from(), a.to() + 1);
    const std::size_t last = a.at[0];
    const bool as_always = last >= lead && hashes.any_order(last - lead, last) == of_lead;
    const std::size_t until = as_always ? last - lead : last + 1;
    std::uint64_t sum = 0;
    std::size_t from = 0;  // behind the last gradient of the step before
    for (std::size_t i = 0; i < until && sum <= one; ++i) {
      if (!gradient(i)) continue;
      sum += symbol(i).count;
      if (sum != one) continue;
      starts.push_back(start_within(from, i, a));
      anchors.push_back(i);
      from = i + 1;
      sum = 0;
    }
    unclear = sum != 0;
    if (unclear) {
      starts.clear();
      anchors.clear();
    }
    if (as_always) {
      starts.push_back(until);
      anchors.push_back(last);
    }
  }

  // Where the step began whose last gradient is at `to`: where its data came in.
  std::size_t start_within(std::size_t from, std::size_t to, const Anchor& a) const {
    std::set<std::uint32_t> batches;
    for (std::size_t i = a.from(); i < a.to(); ++i) {
      if (data_in(i)) batches.insert(text_[i]);
    }
    std::size_t first = from;
    while (!gradient(first)) ++first;
    if (from != 0) {  // behind another step: the first batch
      for (std::size_t i = from; i < first; ++i) {
        if (batches.contains(text_[i])) return i;
      }
      return from;
    }
    for (std::size_t i = std::min(first, to); i-- > 0;) {  // behind what prepares: the last
      if (!batches.contains(text_[i])) continue;
      while (i > 0 && batches.contains(text_[i - 1])) --i;
      return i;
    }
    return first;
  }

  // Whether parameters are gathered behind the last reduction: as the optimizer of ZeRO does when
  // it has changed them.
  bool behind_is_optimizer(const Anchor& a, std::size_t behind) const {
    for (std::size_t i = a.from(); i < a.from() + behind; ++i) {
      if (symbol(i).kind == Kind::collective && symbol(i).bytes > kScalarBytes) return true;
    }
    return false;
  }

  // How often what a step begins with is made before the first gradient is reduced.
  std::size_t micro_batches(const Anchor& a, std::size_t behind) const {
    const std::size_t from = a.from() + behind;
    std::size_t to = from;
    while (to < a.to() && !gradient(to)) ++to;
    for (std::size_t p = 3; from + 2 * p <= to; ++p) {
      if (text_[from] != text_[from + p]) continue;
      const auto at = text_.begin() + static_cast<std::ptrdiff_t>(from);
      const auto length = static_cast<std::ptrdiff_t>(p);
      if (!std::equal(at, at + length, at + length)) continue;
      return (to - from) / p + ((to - from) % p != 0 ? 1 : 0);
    }
    return 1;
  }

  const Sequence& s_;
  bool closed_;
  Text text_;
  std::vector<std::size_t> place_;  // of each symbol of the text: the operation
  std::vector<bool> gradient_;      // by symbol
  std::size_t gradients_ = 0;
  std::uint64_t batch_bytes_ = kScalarBytes;
  bool any_data_ = false;
};

}  // namespace

Period find_period(const Sequence& sequence, bool closed) {
  Period with_copies = Finder(sequence, true, closed).run();
  if (!with_copies.starts.empty()) return with_copies;
  // Copies of a thread that loads data ahead are in no order with the rest.
  return Finder(sequence, false, closed).run();
}

}  // namespace tprof::steps
