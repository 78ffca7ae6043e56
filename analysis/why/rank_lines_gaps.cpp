// Finds where in its steps a rank's device has nothing to do for longest.
#include <algorithm>
#include <cmath>
#include <span>

#include "why/numbers.h"
#include "why/rank_lines.h"

namespace tprof::why {
namespace {

// Less of a step is nobody's concern.
constexpr std::int64_t kLeastParts = 50;      // all gaps of a place
constexpr std::int64_t kLeastPartsOne = 400;  // one of them

// Calls f(gap) for each gap between these spans that is not at one of the ends of `within`.
template <typename F>
void each_gap(const Spans& spans, Span within, F&& f) {
  auto s = first_behind(spans, within.from_ns);
  if (s == spans.end()) return;
  for (auto next = std::next(s); next != spans.end() && next->from_ns < within.to_ns; s = next++) {
    f(Span{s->to_ns, next->from_ns});
  }
}

// "3rd ncclAllGather": which of the calls of its name it is. Where several were timed together, the
// first or the last of them.
template <typename Calls>
text::Kept which_of(const typename Calls::element_type& call, const Calls& calls, bool last) {
  std::uint64_t nth = last ? call.calls : 1;
  std::uint64_t all = 0;
  for (const auto& c : calls) {
    if (c.name != call.name) continue;
    if (&c == &call) nth += all;
    all += c.calls;
  }
  const std::string which = nth == 1 ? "first" : nth == all ? "last" : ordinal(nth);
  return all == 1 ? call.name : text::Kept(which + " " + call.name.str());
}

}  // namespace

// The gaps of a step, summed up by the calls of NCCL around them.
struct RankLines::Gaps {
  std::span<const Collective> calls{};
  std::vector<const Collective*> by_begin{};
  std::vector<const Collective*> by_end{};
  std::span<const Load> loads{};        // copies to the device
  std::vector<std::int64_t> batches{};  // when those of batches were called
  std::int64_t before_batches_ns = 0;
  std::map<std::pair<const Collective*, const Collective*>, std::int64_t> between{};

  Gaps(std::span<const Collective> calls_of_step, std::span<const Load> loads_of_step)
      : calls(calls_of_step), loads(loads_of_step) {
    for (const Collective& c : calls) by_begin.push_back(&c);
    by_end = by_begin;
    std::ranges::sort(by_begin, {}, [](const Collective* c) { return c->on_device.from_ns; });
    std::ranges::sort(by_end, {}, [](const Collective* c) { return c->on_device.to_ns; });
    // A step begins with its batch. FSDP copies a few sizes behind each all-gather: a copy that is
    // far smaller is of no other batch.
    std::uint64_t most = 0;
    for (const Load& l : loads) {
      if (l.called_ns < calls.front().called_ns) most = std::max(most, l.bytes);
    }
    for (const Load& l : loads) {
      if (most != 0 && 2 * l.bytes >= most) batches.push_back(l.called_ns);
    }
  }

  void add(Span gap) {
    const auto end = std::ranges::upper_bound(
        by_end, gap.from_ns, {}, [](const Collective* c) { return c->on_device.to_ns; });
    const auto begin = std::ranges::lower_bound(
        by_begin, gap.to_ns, {}, [](const Collective* c) { return c->on_device.from_ns; });
    const Collective* behind = end == by_end.begin() ? nullptr : *std::prev(end);
    const Collective* before = begin == by_begin.end() ? nullptr : *begin;
    if (before == nullptr && !loads.empty() && loads.back().called_ns >= gap.from_ns) return;
    const auto batch = std::ranges::lower_bound(batches, gap.from_ns);
    // Kernels that run before the step's first batch may be of the step before.
    if (behind == nullptr && batch == batches.begin() &&
        (batch == batches.end() || *batch >= gap.to_ns)) {
      return;
    }
    // The host loads each of several batches and copies it to the device.
    if (batch != batches.end() && *batch < gap.to_ns) {
      before_batches_ns += *batch - gap.from_ns;
      gap.from_ns = *std::prev(std::ranges::lower_bound(batches, gap.to_ns));
    }
    between[{behind, before}] += gap.ns();
  }
};

// Returns the calls of each step that counts and has any.
std::vector<std::span<const RankLines::Collective>> RankLines::calls_of_steps() const {
  std::vector<std::span<const Collective>> all;
  for (auto from = collectives_.begin(); from != collectives_.end();) {
    const auto to = std::ranges::find_if(from, collectives_.end(),
                                         [&](const Collective& c) { return c.step != from->step; });
    if (from->step != SIZE_MAX && steps_[from->step].counts) all.emplace_back(from, to);
    from = to;
  }
  return all;
}

void RankLines::find_gaps(const Spans& works) {
  std::erase_if(loads_, [&](const Load& l) { return backward_.contains(l.thread); });
  std::ranges::sort(loads_, {}, &Load::called_ns);
  join(copies_on_device_);
  Cover copies(copies_on_device_);
  for (const std::span<const Collective> calls : calls_of_steps()) {
    const Step& step = steps_[calls.front().step];
    Cell& cell = *step.cell;
    const std::int64_t length = step.on_device.ns();
    Gaps gaps(calls, std::span(std::ranges::lower_bound(loads_, step.from_ns, {}, &Load::called_ns),
                               std::ranges::lower_bound(loads_, step.to_ns, {}, &Load::called_ns)));
    each_gap(works, step.on_device, [&](Span gap) {
      if (gap.ns() * kLeastPartsOne < length) return;
      if (copies(gap.from_ns, gap.to_ns) * 2 > gap.ns()) return;
      gaps.add(gap);
    });
    // The first batch of a step is loaded in the gap at its begin, or behind the step before.
    if (gaps.before_batches_ns != 0) {
      gaps.before_batches_ns += std::llround(cell.lead) + std::llround(cell.between);
    }
    const auto most =
        std::ranges::max_element(gaps.between, {}, [](const auto& p) { return p.second; });
    Place place{.loads = true};
    std::int64_t ns = gaps.before_batches_ns;
    if (most != gaps.between.end() && most->second > ns) {
      const auto [behind, before] = most->first;
      ns = most->second;
      place = {.behind = behind == nullptr ? text::Kept() : which_of(*behind, calls, true),
               .before = before == nullptr ? text::Kept() : which_of(*before, calls, false)};
    }
    if (ns == 0 || ns * kLeastParts < length) continue;
    const auto known = std::ranges::find(facts_.places, place);
    cell.gap = static_cast<float>(ns);
    cell.gap_place = static_cast<std::uint32_t>(known - facts_.places.begin());
    if (known == facts_.places.end()) facts_.places.push_back(place);
  }
}

}  // namespace tprof::why
