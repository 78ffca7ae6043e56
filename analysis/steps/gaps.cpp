#include "steps/gaps.h"

#include <algorithm>

#include "interpose/format/step_mark.h"

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;
using Others = std::vector<std::size_t>;  // operations that are no copies

struct CallsOf {
  const Sequence& sequence;

  std::uint32_t operator[](std::size_t i) const { return sequence.operations[i].symbol; }
  const Symbol& symbol(std::size_t i) const { return sequence.symbols[(*this)[i]]; }
  bool copies_in(std::size_t i) const { return symbol(i).kind == Kind::copy_in; }
  bool small(std::size_t i) const {
    return symbol(i).kind == Kind::reduction && symbol(i).bytes <= kScalarBytes;
  }
  // Batches may differ in size.
  bool alike(std::size_t i, std::size_t k) const {
    return (*this)[i] == (*this)[k] || (copies_in(i) && copies_in(k));
  }
  Others calls(const Gap& gap) const {
    Others all;
    for (std::size_t i = gap.from; i < gap.to; ++i) {
      if (!copies_in(i)) all.push_back(i);
    }
    return all;
  }
};

std::size_t same_first(const CallsOf& text, const Others& a, const Others& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && text[a[n]] == text[b[n]]) ++n;
  return n;
}

std::size_t same_last(const CallsOf& text, const Others& a, const Others& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && text[a[a.size() - 1 - n]] == text[b[b.size() - 1 - n]]) {
    ++n;
  }
  return n;
}

// Returns how many calls belong to the step before.
std::size_t behind(const CallsOf& text, const Others& calls, const Others& head, const Others& tail,
                   bool closed) {
  const bool all_small = std::ranges::all_of(calls, [&](std::size_t i) { return text.small(i); });
  if (!closed && all_small) return calls.size();
  const std::size_t by_head = calls.size() - same_last(text, calls, head);
  return closed ? std::max(by_head, same_first(text, calls, tail)) : by_head;
}

}  // namespace

bool cut_gaps(const Sequence& sequence, std::vector<Gap>& gaps,
              const std::vector<std::size_t>& steps, bool closed) {
  for (Gap& gap : gaps) gap.cut = gap.to;
  if (steps.empty()) return false;
  const CallsOf text{sequence};
  Gap& first = gaps[steps.front()];
  Gap& last = gaps[steps.back()];
  const Others head = text.calls(first);
  const Others tail = text.calls(last);
  std::size_t of_last = 0;
  std::size_t with_small = 0;
  for (Gap& gap : gaps) {
    if (&gap == &first || &gap == &last) continue;
    const Others calls = text.calls(gap);
    const std::size_t n = behind(text, calls, head, tail, closed);
    gap.cut = n == 0 ? gap.from : calls[n - 1] + 1;
    of_last = std::max(
        of_last,
        same_first(text, Others(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(n)),
                   tail));
    with_small +=
        std::ranges::any_of(calls, [&](std::size_t i) { return text.small(i); }) ? 1U : 0U;
  }
  last.cut = of_last == 0 ? last.from : tail[of_last - 1] + 1;
  if (steps.size() > 2) {  // the first begins as the second does: what is before it is setup
    const Gap& second = gaps[steps[1]];
    std::size_t n = 0;
    while (n < second.to - second.cut && n < first.to - first.from &&
           text.alike(first.to - 1 - n, second.to - 1 - n)) {
      ++n;
    }
    first.cut = first.to - n;
  }
  return with_small != 0 && with_small + 2 == gaps.size();
}

}  // namespace tprof::steps
