// Finds where in its steps a rank's device has nothing to do for longest.
#include <algorithm>

#include "why/numbers.h"
#include "why/rank_lines.h"

namespace tprof::why {
namespace {

constexpr std::int64_t kLeastParts = 50;  // of a step: less is nobody's concern

// The longest gap between these spans that is not at one of the ends of `within`.
Span longest_gap(const Spans& spans, Span within) {
  Span longest{};
  auto s = first_behind(spans, within.from_ns);
  if (s == spans.end()) return longest;
  for (auto next = std::next(s); next != spans.end() && next->from_ns < within.to_ns; s = next++) {
    if (next->from_ns - s->to_ns > longest.ns()) longest = {s->to_ns, next->from_ns};
  }
  return longest;
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

// Returns where a time of a step lies in which the device does nothing. `calls` are the step's.
std::optional<Place> RankLines::place_of(Span gap, std::span<const Collective> calls) const {
  const Collective* behind = nullptr;
  const Collective* before = nullptr;
  for (const Collective& c : calls) {
    if (c.on_device.to_ns <= gap.from_ns) {
      if (behind == nullptr || c.on_device.to_ns > behind->on_device.to_ns) behind = &c;
    } else if (before == nullptr || c.on_device.from_ns < before->on_device.from_ns) {
      before = &c;
    }
  }
  if (behind == nullptr || before == nullptr) {
    // Kernels that run before the step's first call of NCCL may be of the step before. The host may
    // have loaded a batch in the gap that is copied to the device behind it.
    const Step& step = steps_[calls.front().step];
    const auto loads_in = [&](std::int64_t from, std::int64_t to) {
      return std::ranges::lower_bound(loads_, from) != std::ranges::lower_bound(loads_, to);
    };
    if (behind == nullptr && !loads_in(step.from_ns, gap.from_ns)) return std::nullopt;
    if (loads_in(gap.from_ns, before == nullptr ? step.to_ns : before->called_ns)) {
      return std::nullopt;
    }
  }
  return Place{behind == nullptr ? text::Kept() : which_of(*behind, calls, true),
               before == nullptr ? text::Kept() : which_of(*before, calls, false)};
}

void RankLines::find_gaps(const Spans& works) {
  std::ranges::sort(loads_);
  join(copies_on_device_);
  Cover copies(copies_on_device_);
  for (const std::span<const Collective> calls : calls_of_steps()) {
    const Step& step = steps_[calls.front().step];
    const Span gap = longest_gap(works, step.on_device);
    if (gap.ns() * kLeastParts < step.on_device.ns()) continue;
    if (copies(gap.from_ns, gap.to_ns) * 2 > gap.ns()) continue;
    const std::optional<Place> place = place_of(gap, calls);
    if (!place) continue;
    const auto known = std::ranges::find(facts_.places, *place);
    step.cell->gap = static_cast<float>(gap.ns());
    step.cell->gap_place = static_cast<std::uint32_t>(known - facts_.places.begin());
    if (known == facts_.places.end()) facts_.places.push_back(*place);
  }
}

}  // namespace tprof::why
