#include "steps/period.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "steps/anchor.h"
#include "steps/bounds.h"
#include "steps/order.h"
#include "steps/uneven.h"

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;

// Returns the start of a step that is not as usual, between the anchors before `from` and at `to`.
// Something put in before it may save it some calls (after an evaluation, FSDP2's root is still
// gathered). So its first batch tells: the one before the part that is as usual.
std::size_t start_of_odd(const Order& text, const Anchor& a, std::size_t from, std::size_t to,
                         std::size_t lead, std::uint64_t of_rest) {
  const std::size_t same = std::min(same_before(text, a, from, to), lead);
  const std::uint32_t first = lead == 0 ? text[a.to()] : text[a.to() - lead];
  if (text.copies_in(first)) {
    const std::size_t before = to - same;
    const std::size_t near = std::min(before - from, 2 * (lead - same));
    for (std::size_t i = before; i-- > before - near;) {
      if (text[i] != first) continue;
      // The tensors of a batch may be of one size.
      std::size_t of = a.to() - lead;
      while (text[++of] == first && i > from && text[i - 1] == first) --i;
      return i;
    }
  }
  const std::size_t behind = a.to() - a.from() - lead;
  const bool rest = to - from >= behind && text.any_order(from, from + behind) == of_rest;
  return rest ? from + behind : from;
}

// Returns the elements of gradients that were reduced.
std::uint64_t volume(const Order& text, std::size_t from, std::size_t to) {
  std::uint64_t sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += text.gradient(i) ? text.symbol(i).count : 0;
  return sum;
}

// Returns where the first step begins whose last gradient is at `to`: where all calls are that each
// step makes before its first gradient. It may make others between them.
std::size_t start_of_first(const Order& text, const Anchor& a, std::size_t lead, std::size_t to) {
  std::size_t at = 0;
  while (at < to && !text.gradient(at)) ++at;
  const std::size_t first = a.to() - lead;
  std::size_t usual = first;
  while (usual < a.to() && !text.gradient(usual)) ++usual;
  if (usual == first || !text.copies_in(text[first])) return start_within(text, 0, to, a);
  for (std::size_t others = lead; usual > first && at > 0;) {
    if (text[--at] == text[usual - 1]) {
      --usual;
    } else if (others-- == 0) {
      break;
    }
  }
  return usual == first ? at : start_within(text, 0, to, a);
}

// Places the first steps, which make and order their buckets anew (DDP) or fetch in another order
// (ZeRO-3). Each is known by the gradients that it reduced: as many as every other.
void first_steps(const Order& text, const Anchor& a, std::size_t lead, std::uint64_t of_lead,
                 std::vector<std::size_t>& starts, std::vector<std::size_t>& anchors,
                 bool& unclear) {
  const std::uint64_t one = volume(text, a.from(), a.to() + 1);
  const std::size_t last = a.at[0];
  const bool as_always = last >= lead && text.any_order(last - lead, last) == of_lead;
  const std::size_t until = as_always ? last - lead : last + 1;
  std::uint64_t sum = 0;
  std::size_t from = 0;  // after the last gradient of the step before
  for (std::size_t i = 0; i < until && sum <= one; ++i) {
    if (!text.gradient(i)) continue;
    sum += text.symbol(i).count;
    if (sum != one) continue;
    starts.push_back(from == 0 ? start_of_first(text, a, lead, i) : start_within(text, from, i, a));
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

// True if parameters are gathered after the last reduction, as the optimizer of ZeRO does when it
// has changed them.
bool behind_is_optimizer(const Order& text, const Anchor& a, std::size_t behind) {
  for (std::size_t i = a.from(); i < a.from() + behind; ++i) {
    if (text.symbol(i).kind == Kind::collective && text.symbol(i).bytes > kScalarBytes) return true;
  }
  return false;
}

// Returns how often the beginning of a step is repeated before the first gradient is reduced.
std::size_t micro_batches(const Order& text, const Anchor& a, std::size_t behind) {
  const std::size_t from = a.from() + behind;
  std::size_t to = from;
  while (to < a.to() && !text.gradient(to)) ++to;
  for (std::size_t p = 3; from + 2 * p <= to; ++p) {
    if (text[from] != text[from + p]) continue;
    const auto at = text.begin() + static_cast<std::ptrdiff_t>(from);
    const auto length = static_cast<std::ptrdiff_t>(p);
    if (!std::equal(at, at + length, at + length)) continue;
    return (to - from) / p + ((to - from) % p != 0 ? 1 : 0);
  }
  return 1;
}

// Returns where the step ends whose last reduction is before `from`: behind what is there in each
// step, and what some steps have in front of that.
std::optional<std::size_t> end_of(const Order& text, const Anchor& a, std::size_t behind,
                                  std::size_t from, std::size_t to) {
  const std::uint64_t rest = text.any_order(a.from(), a.from() + behind);
  for (std::size_t end = from + behind; end <= to; ++end) {
    if (text.any_order(end - behind, end) == rest) return end;
  }
  return std::nullopt;
}

// True if what lies from `from` to `to` is also behind the last reduction of another step.
bool seen_behind_another(const Order& text, const Anchor& a, std::size_t from, std::size_t to) {
  return std::any_of(a.at.begin(), a.at.end() - 1, [&](std::size_t at) {
    return text.ordered(at + 1, at + 1 + to - from) == text.ordered(from, to);
  });
}

// Calls that the program put in behind some steps: a log, an evaluation.
struct PutIn {
  std::size_t from = 0;  // the first time
  std::size_t length = 0;
  std::vector<std::size_t> steps{};  // from 1; 0: one whose beginning is not known
};

std::vector<PutIn> all_put_in(const Order& text, const Anchor& a, std::size_t behind,
                              const std::vector<std::size_t>& starts) {
  std::map<std::pair<std::size_t, std::uint64_t>, PutIn> all;
  for (std::size_t k = 1; k < a.at.size(); ++k) {
    const std::size_t step = starts.size() + k - a.at.size();
    const std::size_t to = starts[step];
    const std::size_t after = a.at[k - 1] + 1;
    const std::size_t from = end_of(text, a, behind, after, to).value_or(after + behind);
    if (to <= from) continue;
    all.try_emplace({to - from, text.ordered(from, to)}, PutIn{from, to - from})
        .first->second.steps.push_back(step);
  }
  std::vector<PutIn> longest_first;
  for (auto put = all.rbegin(); put != all.rend(); ++put) {
    longest_first.push_back(std::move(put->second));
  }
  return longest_first;
}

// True if it is behind every n-th step, and so belongs behind the last one too.
bool is_due(const PutIn& put, std::size_t last) {
  const std::size_t n = put.steps[0];
  return n != 0 && last % n == 0 && put.steps.size() == (last - 1) / n &&
         std::ranges::all_of(put.steps, [n](std::size_t step) { return step % n == 0; });
}

// Returns where the last step ends, at `end` or behind what is put in behind others. Several such
// parts may be due at once. One that is not may be what the program does when all steps are over,
// and so may the same one again.
std::size_t end_of_last(const Order& text, const Anchor& a, std::size_t behind,
                        const std::vector<std::size_t>& starts, std::size_t end) {
  std::vector<PutIn> left = all_put_in(text, a, behind, starts);
  for (bool all_due = true, first = true; all_due; first = false) {
    const auto next = std::ranges::find_if(left, [&](const PutIn& put) {
      return (first || is_due(put, starts.size())) && put.length <= text.size() - end &&
             text.ordered(put.from, put.from + put.length) == text.ordered(end, end + put.length);
    });
    if (next == left.end()) break;
    end += next->length;
    all_due = is_due(*next, starts.size());
    left.erase(next);
  }
  return end;
}

void place_steps(const Order& text, const Anchor& a, bool closed, Period& p) {
  const std::size_t m = a.to() - a.from();
  const std::size_t behind = behind_last_reduction(text, a, closed);
  const std::size_t lead = m - behind;
  const std::uint64_t of_lead = text.any_order(a.to() - lead, a.to());
  const std::uint64_t of_rest = text.any_order(a.from(), a.from() + behind);
  std::vector<std::size_t> starts;
  std::vector<std::size_t> anchors;
  first_steps(text, a, lead, of_lead, starts, anchors, p.unclear_beginning);
  for (std::size_t k = 1; k < a.at.size(); ++k) {
    const std::size_t from = a.at[k - 1] + 1;
    const std::size_t to = a.at[k];
    const bool as_always = to - from >= lead && text.any_order(to - lead, to) == of_lead;
    starts.push_back(as_always ? to - lead : start_of_odd(text, a, from, to, lead, of_rest));
    anchors.push_back(to);
  }
  std::size_t end = a.at.back() + 1;
  const std::optional<std::size_t> last = end_of(text, a, behind, end, text.size());
  if (last && seen_behind_another(text, a, end, *last - behind)) {
    end = end_of_last(text, a, behind, starts, *last);
  } else if (!closed) {  // killed while it ended a step
    starts.pop_back();
    anchors.pop_back();
    end = a.at[a.at.size() - 2] + 1 + behind;
  }
  p.unclear_end = closed && volume(text, end, text.size()) != 0;
  for (const std::size_t i : starts) p.starts.push_back(text.operation(i));
  p.starts.push_back(text.operation(end));
  for (const std::size_t i : anchors) p.anchors.push_back(text.operation(i));
  p.whole_steps = behind_is_optimizer(text, a, behind) || micro_batches(text, a, behind) > 1;
}

bool small_reduction(const Order& text, std::size_t i) {
  return text.symbol(i).kind == Kind::reduction && !text.gradient(i);
}

// Places each step from its first batch on. Norms and flags may follow its last reduction.
void place_uneven(const Order& text, const Uneven& uneven, bool closed, Period& p) {
  const Anchor& a = uneven.anchor;
  std::size_t from = 0;
  for (const std::size_t to : a.at) {
    while (from != 0 && small_reduction(text, from)) ++from;
    const std::size_t start = from == 0 ? uneven.start : start_within(text, from, to, a);
    p.starts.push_back(text.operation(start));
    p.anchors.push_back(text.operation(to));
    from = to + 1;
  }
  const auto of_next = [&](std::size_t i) {
    return closed ? text.data_in(i) || text.gradient(i) : !small_reduction(text, i);
  };
  while (from < text.size() && !of_next(from)) ++from;
  p.starts.push_back(text.operation(from));
  p.unclear_end = closed && volume(text, from, text.size()) != 0;
}

Period find(const Order& text, bool closed) {
  Period p;
  const std::optional<Anchor> anchor = find_anchor(text);
  const std::optional<Uneven> uneven = find_uneven(text);
  const bool even = anchor && !holds_two(text, *anchor);
  if (uneven && (uneven->told || !uneven->mostly_alike || !even)) {
    place_uneven(text, *uneven, closed, p);
  } else if (even) {
    place_steps(text, *anchor, closed, p);
  }
  p.uneven = uneven && !uneven->told;
  const std::size_t n = p.anchors.size();
  if (n >= kFewestSteps) return p;
  p = Period();
  p.few = n != 0;
  p.why = n == 0 ? "the calls do not repeat as steps do" : too_few_repeats(n);
  return p;
}

// True if most of the steps fall into several that call the same, but for the sizes of batches.
bool fall_apart(const Order& alike, const std::vector<std::size_t>& into, const Period& p) {
  std::size_t n = 0;
  auto at = into.begin();
  for (std::size_t k = 0; k + 1 < p.starts.size(); ++k) {
    at = std::lower_bound(at, into.end(), p.starts[k]);
    const auto end = std::lower_bound(at, into.end(), p.starts[k + 1]);
    bool same = end - at > 1;
    for (auto i = at; same && i != end && i + 1 != into.end(); ++i) {
      same = alike.any_order(*i, *(i + 1)) == alike.any_order(*at, *(at + 1));
    }
    n += same ? 1U : 0U;
  }
  return 2 * n > p.anchors.size();
}

// True if there are more steps where all batches count as alike: only some steps have one of a
// certain size. If both find as many, those are better of which more begin with a batch.
bool better(const Order& alike, const Period& by_alike, const Period& found) {
  const std::size_t n = by_alike.anchors.size();
  if (n > found.anchors.size()) {
    return found.anchors.empty() || fall_apart(alike, by_alike.starts, found);
  }
  const auto with_batch = [&](const Period& p) {
    return std::count_if(p.starts.begin(), p.starts.end() - 1,
                         [&](std::size_t i) { return alike.copies_in(alike[i]); });
  };
  return n != 0 && n == found.anchors.size() && with_batch(by_alike) > with_batch(found);
}

Period find_among(const Sequence& sequence, Sends sends, bool closed) {
  const Order order(sequence, Copies::as_they_are, sends);
  Period found = find(order, closed);
  if (order.batches_differ()) {
    const Order alike(sequence, Copies::alike, sends);
    Period by_alike = find(alike, closed);
    if (better(alike, by_alike, found)) found = std::move(by_alike);
  }
  if (!found.starts.empty() || found.few) return found;
  // Copies of a thread that loads data ahead have no order relative to the rest.
  return find(Order(sequence, Copies::none, sends), closed);
}

// Nothing but the batch tells steps from layers that reduce the same, where sends are left out.
bool each_has_a_batch(const Order& order, const Period& p) {
  std::size_t i = 0;
  for (std::size_t k = 0; k + 1 < p.starts.size(); ++k) {
    while (i < order.size() && order.operation(i) < p.starts[k]) ++i;
    bool has = false;
    for (; i < order.size() && order.operation(i) < p.starts[k + 1]; ++i) has |= order.data_in(i);
    if (!has) return false;
  }
  return !p.starts.empty();
}

// True if some rank is sent to, or received from, with several sizes.
bool sends_differ(const Sequence& sequence) {
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> seen;
  return std::ranges::any_of(sequence.symbols, [&](const Symbol& s) {
    return s.kind == Kind::p2p && !seen.emplace(s.name, s.comm, s.peer).second;
  });
}

}  // namespace

std::string too_few_repeats(std::size_t n) {
  return fmt::format(
      "the calls repeat {} times, and below {} a step can't be told from a micro-batch or a layer",
      n, kFewestSteps);
}

Period find_period(const Sequence& sequence, bool closed) {
  Period found = find_among(sequence, Sends::as_they_are, closed);
  if (!found.starts.empty() || !sends_differ(sequence)) return found;
  Period without_sends = find_among(sequence, Sends::none, closed);
  const Order order(sequence, Copies::as_they_are, Sends::none);
  return each_has_a_batch(order, without_sends) ? without_sends : found;
}

}  // namespace tprof::steps
