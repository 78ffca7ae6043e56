#include "export/timeline.h"

#include <algorithm>

#include "read/parallel.h"

namespace tprof::trace_export {
namespace {

constexpr std::int64_t kWindows = 1000;
constexpr std::int64_t kShortestWindow = 1'000'000;

// All ranks together keep so many, at 24 bytes each. Those beyond have no arrow, and their device
// times no size.
constexpr std::size_t kMostCalls = std::size_t{1} << 23;

}  // namespace

std::int64_t window_of(std::int64_t length_ns) {
  for (std::int64_t ten = kShortestWindow;; ten *= 10) {
    for (const std::int64_t window : {ten, 2 * ten, 5 * ten}) {
      if (length_ns / window < kWindows) return window;
    }
  }
}

Timeline::Timeline(const Members& members, const filter::Selection& asked, bool arrows)
    : only_(asked.filter()) {
  job::Job of = asked.job();
  std::erase_if(of.processes, [&](const read::Process* p) { return !members.contains(p); });
  processes_ = of.processes;
  std::int64_t length_ns = 0;
  for (const auto& [p, member] : members) {
    if (p->ledger) length_ns = std::max(length_ns, member.to->moved(p->ledger->ts_ns));
  }
  reading_ = {kMostCalls / std::max<std::size_t>(processes_.size(), 1), arrows,
              window_of(length_ns)};
  std::map<const read::Process*, std::uint32_t> order;
  for (const read::Process* p : processes_) {
    order.emplace(p, static_cast<std::uint32_t>(order.size()));
  }
  const run::Lines lines = asked.lines().of(of);
  found_ = asked.found() ? *asked.found() : steps::find(lines);
  ranks_ = read_timelines(lines, members, order, reading_);
  find_turns();
}

// Finds out in which order ranks came. Those that came at one moment are in the order in which
// their lines stand.
void Timeline::find_turns() {
  std::map<Channel, std::vector<Arrival>> by_channel;
  for (const read::Process* p : processes_) {
    for (auto& [channel, arrivals] : std::exchange(ranks_[p].arrivals, {})) {
      auto& all = by_channel[channel];
      all.insert(all.end(), arrivals.begin(), arrivals.end());
    }
  }
  std::vector<std::vector<Arrival>*> channels;
  for (auto& [channel, arrivals] : by_channel) channels.push_back(&arrivals);
  read::in_parallel(channels.size(), [&](std::size_t i) {
    std::ranges::sort(*channels[i], {},
                      [](const Arrival& a) { return std::tuple(a.seq, a.at_ns, a.rank); });
  });
  for (const std::vector<Arrival>* all : channels) {
    for (auto first = all->begin(); first != all->end();) {
      const auto end =
          std::find_if(first, all->end(), [&](const Arrival& a) { return a.seq != first->seq; });
      for (auto a = first; a != end && end - first > 1; ++a) {
        DrawnCall& call = ranks_[processes_[a->rank]].calls[a->call];
        const Turn turn = a == first ? Turn::first : a + 1 == end ? Turn::last : Turn::between;
        call.turn = static_cast<std::uint8_t>(turn);
        call.meet = static_cast<std::uint32_t>(next_arrow_);
      }
      if (end - first > 1) ++next_arrow_;
      first = end;
    }
  }
  for (const read::Process* p : processes_) {
    RankTimeline& rank = ranks_[p];
    rank.first_arrow = next_arrow_;
    next_arrow_ += static_cast<std::int64_t>(rank.calls.size());
  }
}

const RankTimeline* Timeline::of(const read::Process& process) const {
  const auto found = ranks_.find(&process);
  return found == ranks_.end() ? nullptr : &found->second;
}

}  // namespace tprof::trace_export
