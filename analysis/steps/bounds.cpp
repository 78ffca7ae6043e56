#include "steps/bounds.h"

#include <algorithm>
#include <set>

namespace tprof::steps {

using Kind = Symbol::Kind;

namespace {

// Returns how many operations behind the last reduction the first step proves to be the step's: if
// it is like the others, the program had done something else before it. DDP does something else
// within its second step, where it makes its buckets anew behind the first batch: if the batches of
// this step that seem to be missing are before that, it proves nothing of them.
std::size_t least_behind(const Order& text, const Anchor& a, std::size_t same,
                         std::uint32_t batch) {
  const std::size_t m = a.to() - a.from();
  std::size_t first = 0;
  while (first < m - same && text[a.from() + first] != batch) ++first;
  std::size_t at = a.at[0] - same;
  for (std::size_t missing = m - same; missing > first; --missing) {
    do {
      if (at == 0 || text.gradient(--at)) return m - same;
    } while (text[at] != text[a.from() + missing - 1]);
  }
  return first;
}

// Returns the copy that brings the first batch of a step. If the first step is like the others, it
// begins where what is before it, the setup, is not: with the copy that comes first in each step.
// FSDP2 makes other copies, of addresses, in front of the first gradient.
std::uint32_t first_batch(const Order& text, const Anchor& a, std::size_t same) {
  std::size_t first = a.from();
  while (first < a.to() && !text.data_in(first)) ++first;
  return text[a.at[0] - same] == text[first] && text.data_in(first)
             ? text[first]
             : text[start_within(text, 0, a.at[0], a)];
}

}  // namespace

// Wherever a program did something else between two steps, and where it ended, it had made at least
// these operations. Its other calls did not belong to the next step yet.
std::size_t behind_last_reduction(const Order& text, const Anchor& a, bool closed) {
  const std::size_t m = a.to() - a.from();
  const auto same_ahead = [&](std::size_t from, std::size_t to) {
    std::size_t n = 0;
    while (n < m && from + n < to && text[from + n] == text[a.from() + n]) ++n;
    return n;
  };
  std::size_t until_end = m;
  if (closed) until_end = same_ahead(a.at.back() + 1, text.size());
  std::size_t most = until_end;
  for (std::size_t k = 0; k + 1 < a.at.size(); ++k) {
    const std::size_t from = a.at[k] + 1;
    const std::size_t to = a.at[k + 1];
    if (to - from <= m) continue;
    const std::size_t ahead = same_ahead(from, to);
    // Something was put in, and both ends are as usual.
    if (ahead + same_before(text, a, from, to) >= m) most = std::min(most, ahead);
  }
  const std::size_t same = same_before(text, a, 0, a.at[0]);  // of the first step, as in the others
  const std::uint32_t batch = first_batch(text, a, same);
  const std::size_t least = least_behind(text, a, same, batch);
  // Takes norms and flags directly after it, then goes up to where a batch comes in as for the
  // first step.
  std::size_t n = 0;
  for (std::size_t i = 0; i < most && !text.data_in(a.from() + i); ++i) {
    const bool small =
        text.symbol(a.from() + i).kind == Kind::reduction && !text.gradient(a.from() + i);
    if (small) n = i + 1;
  }
  const bool data = text.copies_in(batch);
  // Something may also be put in within steps, in front of what is behind the last reduction.
  const auto begins = [&](std::size_t i) { return i < m && text.data_in(a.from() + i); };
  const bool within = least > most && data && begins(least) && !begins(most);
  const bool before = least < most && (!data || text[a.from() + least] == batch);
  const bool told = least == most || before || within;
  if (told) n = std::max(n, least);
  for (const std::size_t last : {most, until_end}) {
    for (std::size_t i = n; data && i < m && i <= last; ++i) {
      if (text[a.from() + i] == batch) return i;
    }
  }
  return told || most == m ? n : most;
}

std::size_t same_before(const Order& text, const Anchor& a, std::size_t from, std::size_t to) {
  const std::size_t m = a.to() - a.from();
  std::size_t n = 0;
  while (n < m && n < to - from && text[to - 1 - n] == text[a.to() - 1 - n]) ++n;
  return n;
}

std::size_t start_within(const Order& text, std::size_t from, std::size_t to, const Anchor& a) {
  std::set<std::uint32_t> batches;
  for (std::size_t i = a.from(); i < a.to(); ++i) {
    if (text.data_in(i)) batches.insert(text[i]);
  }
  std::size_t first = from;
  while (!text.gradient(first)) ++first;
  if (from != 0) {  // after another step: take the first batch
    for (std::size_t i = from; i < first; ++i) {
      if (batches.contains(text[i])) return i;
    }
    return from;
  }
  for (std::size_t i = std::min(first, to); i-- > 0;) {  // after the setup: take the last
    if (!batches.contains(text[i])) continue;
    while (i > 0 && batches.contains(text[i - 1])) --i;
    return i;
  }
  return first;
}

}  // namespace tprof::steps
