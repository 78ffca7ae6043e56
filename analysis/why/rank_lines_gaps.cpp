// Finds where in its steps a rank's device has nothing to do for longest.
#include <algorithm>
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

// Adds where a time of a step lies in which the device does nothing, as far as anything tells.
// `calls` are the step's.
void RankLines::add_places(Span gap, std::span<const Collective> calls, PlaceTimes& to) const {
  const Collective* behind = nullptr;
  const Collective* before = nullptr;
  for (const Collective& c : calls) {
    if (c.on_device.to_ns <= gap.from_ns) {
      if (behind == nullptr || c.on_device.to_ns > behind->on_device.to_ns) behind = &c;
    } else if (before == nullptr || c.on_device.from_ns < before->on_device.from_ns) {
      before = &c;
    }
  }
  const Step& step = steps_[calls.front().step];
  const auto loads_in = [&](std::int64_t from, std::int64_t until) {
    return std::span(std::ranges::lower_bound(loads_, from),
                     std::ranges::lower_bound(loads_, until));
  };
  if (before == nullptr && !loads_in(gap.from_ns, step.to_ns).empty()) return;
  const Place place{.behind = behind == nullptr ? text::Kept() : which_of(*behind, calls, true),
                    .before = before == nullptr ? text::Kept() : which_of(*before, calls, false)};
  if (behind != nullptr) {
    to[place] += gap.ns();
    return;
  }
  // Before the step's first call of NCCL there may be several batches, each of which the host loads
  // and copies to the device. Kernels that run before the first of them may be of the step before.
  const auto loads = loads_in(gap.from_ns, gap.to_ns);
  if (loads.empty()) {
    if (!loads_in(step.from_ns, gap.from_ns).empty()) to[place] += gap.ns();
    return;
  }
  to[{.loads = true}] += loads.front() - gap.from_ns;
  to[place] += gap.to_ns - loads.back();
}

void RankLines::find_gaps(const Spans& works) {
  std::ranges::sort(loads_);
  join(copies_on_device_);
  Cover copies(copies_on_device_);
  for (const std::span<const Collective> calls : calls_of_steps()) {
    const Step& step = steps_[calls.front().step];
    PlaceTimes times;
    each_gap(works, step.on_device, [&](Span gap) {
      if (gap.ns() * kLeastPartsOne < step.on_device.ns()) return;
      if (copies(gap.from_ns, gap.to_ns) * 2 > gap.ns()) return;
      add_places(gap, calls, times);
    });
    const auto most = std::ranges::max_element(times, {}, [](const auto& p) { return p.second; });
    if (most == times.end() || most->second * kLeastParts < step.on_device.ns()) continue;
    const auto known = std::ranges::find(facts_.places, most->first);
    step.cell->gap = static_cast<float>(most->second);
    step.cell->gap_place = static_cast<std::uint32_t>(known - facts_.places.begin());
    if (known == facts_.places.end()) facts_.places.push_back(most->first);
  }
}

}  // namespace tprof::why
