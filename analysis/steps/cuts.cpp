#include "steps/cuts.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace tprof::steps {
namespace {

using Letters = std::span<const std::uint32_t>;
using Counts = std::map<std::uint32_t, std::uint64_t>;  // of letters

constexpr std::uint32_t kBatch = UINT32_MAX;  // stands for a batch of any size

std::size_t same_first(Letters a, Letters b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::size_t same_last(Letters a, Letters b) {
  const auto ends = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return static_cast<std::size_t>(ends.first - a.rbegin());
}

// Returns the place from which `text` has the smallest edit distance to `head`, among the places
// for which good(place) is largest.
template <typename Good>
std::size_t most_like(Letters text, Letters head, const Good& good) {
  constexpr std::size_t kMostWork = std::size_t{1} << 22;
  const std::size_t same = same_last(text, head);
  const std::size_t end = text.size() - same;
  const std::size_t rows = head.size() - same;
  const std::size_t near = std::min(end, 2 * rows + 64);
  if (rows == 0 || rows * near > kMostWork) return end - std::min(rows, near);
  std::vector<std::size_t> cost(near + 1);  // by the length of the part
  for (std::size_t j = 0; j <= near; ++j) cost[j] = j;
  for (std::size_t i = 1; i <= rows; ++i) {
    std::size_t diagonal = std::exchange(cost[0], i);
    for (std::size_t j = 1; j <= near; ++j) {
      const bool alike = head[rows - i] == text[end - j];
      const std::size_t here = alike ? diagonal : 1 + std::min(cost[j], cost[j - 1]);
      diagonal = std::exchange(cost[j], here);
    }
  }
  std::size_t best = 0;
  for (std::size_t j = 1; j <= near; ++j) {
    const int better = good(end - j) - good(end - best);
    if (better > 0 || (better == 0 && cost[j] < cost[best])) best = j;
  }
  return end - best;
}

// True if a is a multiple or a fraction of b: (2, 4) and (3, 6).
bool proportional(const Counts& a, const Counts& b) {
  return a.size() == b.size() && std::ranges::equal(a, b, [&](const auto& x, const auto& y) {
           return x.first == y.first &&
                  x.second * b.begin()->second == y.second * a.begin()->second;
         });
}

class Cutter {
 public:
  Cutter(const Text& text, std::vector<Gap>& gaps, bool closed)
      : text_(text), gaps_(gaps), closed_(closed) {}

  Cuts cut() {
    find_usual();
    behind_ = find_behind();
    count_body();
    for (std::size_t k = 0; k + 1 < gaps_.size(); ++k) cut(k);
    cut_last();
    return cuts_;
  }

 private:
  // Something that the program does only after some steps: a log, an evaluation.
  struct PutIn {
    Letters letters{};
    std::vector<std::size_t> steps{};  // from 1
  };

  Letters letters(std::size_t from, std::size_t to) const {
    return Letters(text_.letters).subspan(from, to - from);
  }
  Letters letters(const Gap& gap) const { return letters(gap.from, gap.to); }
  Letters usual() const { return letters(gaps_[cuts_.usual]); }
  Letters tail() const { return usual().first(behind_); }
  Letters head() const { return usual().subspan(behind_); }
  LetterOf kind(std::size_t at) const { return text_.kinds[at]; }
  bool begins_batch(std::size_t from, std::size_t at) const {
    return at < text_.kinds.size() && kind(at) == LetterOf::batch &&
           (at == from || kind(at - 1) != LetterOf::batch);
  }

  bool called(std::size_t at) const {
    return kind(at) == LetterOf::small || kind(at) == LetterOf::call;
  }
  bool begins_step(std::size_t at) const {
    const std::size_t first = gaps_[cuts_.usual].from + behind_;
    if (head().empty() || at >= text_.kinds.size()) return false;
    return kind(first) == LetterOf::batch ? kind(at) == LetterOf::batch
                                          : text_.letters[at] == text_.letters[first];
  }
  std::size_t batches(std::size_t from, std::size_t to) const {
    const auto kinds = std::span(text_.kinds).subspan(from, to - from);
    return static_cast<std::size_t>(std::ranges::count(kinds, LetterOf::batch));
  }

  // Takes the most frequent gap; if two are equally frequent (an evaluation after every other
  // step), the shorter one.
  void find_usual() {
    std::map<std::pair<std::size_t, std::vector<std::uint32_t>>, std::vector<std::size_t>> alike;
    for (std::size_t k = 1; k + 1 < gaps_.size(); ++k) {
      const Letters all = letters(gaps_[k]);
      alike[{all.size(), {all.begin(), all.end()}}].push_back(k);
    }
    for (const auto& [what, which] : alike) {
      if (which.size() <= times_) continue;
      times_ = which.size();
      cuts_.usual = which.back();
    }
  }

  // Returns how many letters of the template belong to the ended step at least, since it has
  // batches there that the first step did not take: an evaluation after each step takes some.
  std::size_t behind_others() const {
    const Letters first = letters(gaps_.front());
    const Gap& gap = gaps_[cuts_.usual];
    bool any = false;
    for (std::size_t i = gap.to; i > gap.from; --i) {
      if (kind(i - 1) != LetterOf::batch) continue;
      if (std::ranges::count(first, text_.letters[i - 1]) == 0) return any ? i - gap.from : 0;
      any = true;
    }
    return 0;
  }

  // Returns how many letters of the template belong to the ended step. The first step shows the
  // minimum, the end of the program the maximum. Between the two, a batch begins the next step.
  std::size_t find_behind() const {
    const Letters all = usual();
    const std::size_t from = gaps_[cuts_.usual].from;
    const std::size_t others = behind_others();
    std::size_t norms = others;
    for (std::size_t i = others; i < all.size() && kind(from + i) != LetterOf::batch; ++i) {
      if (kind(from + i) == LetterOf::small) norms = i + 1;
    }
    const std::size_t least = all.size() - same_last(letters(gaps_.front()), all);
    const std::size_t last = closed_ ? same_first(letters(gaps_.back()), all) : all.size();
    const std::size_t most = others > last ? all.size() : std::max(norms, last);
    const bool told = norms <= least && least <= most;
    if (told && (least == most || begins_batch(from, from + least))) return least;
    for (std::size_t i = norms; i <= most && i < all.size(); ++i) {
      if (begins_batch(from, from + i)) return i;
    }
    if (told) return least;
    for (std::size_t k = 1; k + 1 < gaps_.size(); ++k) {
      const Letters other = letters(gaps_[k]);
      const std::size_t before = all.size() - std::min(all.size(), same_last(other, all));
      const bool put_in = other.size() > all.size() && before <= same_first(other, all);
      if (put_in && norms <= before && before <= most) return before;
    }
    return most < all.size() ? most : norms;
  }

  // Counts a usual step's calls other than gradients, and its batches.
  void count_body() {
    const Gap& gap = gaps_[cuts_.usual];
    for (std::size_t i = gap.from + behind_; i < gap.end; ++i) count(i, body_);
    only_batches_ = body_.empty() || (body_.size() == 1 && body_.contains(kBatch));
  }
  void count(std::size_t at, Counts& to) const {
    if (called(at)) ++to[text_.letters[at]];
    if (kind(at) == LetterOf::batch) ++to[kBatch];
  }

  void cut(std::size_t k) {
    Gap& gap = gaps_[k];
    const Gap& usual = gaps_[cuts_.usual];
    const std::size_t own = batches(usual.from + behind_, usual.to);
    gap.cut = gap.from + most_like(letters(gap), head(), [&](std::size_t at) {
                // It begins as other steps do, with at least as many batches.
                if (!begins_step(gap.from + at)) return 0;
                return k != 0 && batches(gap.from + at, gap.to) >= own ? 2 : 1;
              });
    if (k == 0) return add_micro_batches(gap, gap.from);
    const std::size_t behind = gap.from + same_first(letters(gap), tail());
    add_micro_batches(gap, behind);
    if (behind >= gap.cut) return;
    const Letters put_in = letters(behind, gap.cut);
    const auto alike = [&](const PutIn& p) { return std::ranges::equal(p.letters, put_in); };
    const auto known = std::ranges::find_if(put_in_, alike);
    PutIn& put = known == put_in_.end() ? put_in_.emplace_back(PutIn{put_in}) : *known;
    put.steps.push_back(k);
  }

  // Begins the step earlier if it has more micro-batches than most steps: then a step's calls
  // without gradients repeat before the cut, back to `from`.
  void add_micro_batches(Gap& gap, std::size_t from) {
    if (gap.end == gap.to) return;
    Counts counts;
    std::size_t cut = gap.cut;
    std::size_t i = gap.cut;
    for (; i > from; --i) {
      if (called(i - 1) && !body_.contains(text_.letters[i - 1])) break;
      count(i - 1, counts);
      const bool begins = begins_step(i - 1) && text_.letters[i - 1] == head()[0];
      if (begins && proportional(counts, body_)) cut = i - 1;
    }
    if (only_batches_) {  // these could be the step's or an earlier evaluation's
      if (gaps_.size() < kFewestSteps + 2) return;
      const Gap& usual = gaps_[cuts_.usual];
      const std::size_t n = batches(i, gap.to);
      const bool other = n != 0 && n != batches(usual.from + behind_, usual.to);
      cuts_.uneven = cuts_.uneven || (other && &gap != &gaps_.front());
      if (2 * times_ + 2 >= gaps_.size()) return;
    }
    gap.cut = cut;
  }

  // True if it follows every nth step, and so has to follow the last one too.
  bool is_due(const PutIn& put) const {
    const std::size_t last = gaps_.size() - 1;
    const std::size_t n = put.steps[0];
    return last % n == 0 && put.steps.size() == (last - 1) / n &&
           std::ranges::all_of(put.steps, [n](std::size_t step) { return step % n == 0; });
  }

  // Ends the last step after the usual end of a step and what other steps have after it. One that
  // is not due is taken once: it may be what the program does after all steps.
  void cut_last() {
    Gap& gap = gaps_.back();
    const Letters all = letters(gap);
    const auto found = std::ranges::search(all, tail());
    cuts_.finished = !found.empty() || behind_ == 0;
    gap.cut = gap.from + (cuts_.finished ? static_cast<std::size_t>(found.end() - all.begin()) : 0);
    std::ranges::stable_sort(put_in_, [](const PutIn& a, const PutIn& b) {
      return a.letters.size() > b.letters.size();
    });
    for (bool all_due = true, first = true; all_due; first = false) {
      const auto next = std::ranges::find_if(put_in_, [&](const PutIn& put) {
        return (first || is_due(put)) && put.letters.size() <= gap.to - gap.cut &&
               std::ranges::equal(put.letters, letters(gap.cut, gap.cut + put.letters.size()));
      });
      if (next == put_in_.end()) break;
      gap.cut += next->letters.size();
      all_due = is_due(*next);
      put_in_.erase(next);
    }
  }

  const Text& text_;
  std::vector<Gap>& gaps_;
  const bool closed_;
  Cuts cuts_;
  std::size_t times_ = 0;   // how often the template occurs
  std::size_t behind_ = 0;  // letters of the template that belong to the ended step
  Counts body_;
  bool only_batches_ = false;  // a step calls nothing else
  std::vector<PutIn> put_in_;
};

}  // namespace

std::size_t Text::at(std::size_t operation) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(operations, operation) -
                                  operations.begin());
}

Cuts cut(const Text& text, std::vector<Gap>& gaps, bool closed) {
  return Cutter(text, gaps, closed).cut();
}

}  // namespace tprof::steps
