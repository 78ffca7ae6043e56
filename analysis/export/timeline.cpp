#include "export/timeline.h"

#include <algorithm>

#include "export/lanes.h"

namespace tprof::trace_export {
namespace {

constexpr std::int64_t kWindows = 1000;
constexpr std::int64_t kShortestWindow = 1'000'000;

// All ranks together keep so many, at 24 bytes each. Those beyond have no arrow, and their device
// times no size.
constexpr std::size_t kMostCalls = std::size_t{1} << 23;

// By the last ledgers, which say until when they are true, or the last calls where there are none.
std::int64_t length_ns(const Members& members,
                       const std::map<const read::Process*, RankTimeline>& ranks) {
  std::int64_t end = 0;
  for (const auto& [process, member] : members) {
    if (!member.to) continue;
    if (process->ledger) end = std::max(end, member.to->moved(process->ledger->ts_ns));
    if (const auto rank = ranks.find(process); rank != ranks.end()) {
      end = std::max(end, member.to->moved(rank->second.last_ns));
    }
  }
  return end;
}

}  // namespace

std::int64_t window_of(std::int64_t length_ns) {
  for (std::int64_t ten = kShortestWindow;; ten *= 10) {
    for (const std::int64_t window : {ten, 2 * ten, 5 * ten}) {
      if (length_ns / window < kWindows) return window;
    }
  }
}

Timeline::Timeline(const std::vector<const read::Process*>& processes,
                   const filter::Selection& asked, bool arrows)
    : processes_(processes),
      meets_(processes),
      reading_{kMostCalls / std::max<std::size_t>(processes.size(), 1), arrows},
      only_(asked.filter()) {
  job::Job of = asked.job();
  of.processes = processes;
  for (const read::Process* p : processes) {
    ranks_[p].order = static_cast<std::uint32_t>(ranks_.size());
  }
  const run::Lines lines = asked.lines().of(of);
  found_ = asked.found() ? *asked.found() : steps::find(lines);
  lines.each(
      [&](const read::Process& rank) {
        return TimelineLines(rank, reading_, meets_, ranks_.at(&rank).order);
      },
      [&](TimelineLines& rank) { ranks_[&rank.rank()] = rank.take(); });
}

void Timeline::place(const Members& members) {
  window_ns_ = window_of(length_ns(members, ranks_));
  for (auto& [process, rank] : ranks_) {
    const Placement& to = *members.at(process).to;
    for (RankTimeline::Arrivals& of : rank.arrivals) {
      for (Arrival& a : of.all) a.at_ns = to.moved(a.at_ns);
      meets_.add(meets_.number_of(of.channel), rank.order, of.all);
    }
  }
  next_arrow_ = meets_.number_meets();
  for (const read::Process* p : processes_) {
    RankTimeline& rank = ranks_.at(p);
    for (const RankTimeline::Arrivals& of : rank.arrivals) {
      const std::uint32_t channel = meets_.number_of(of.channel);
      for (const Arrival& a : of.all) {
        const auto [turn, meet] = meets_.turn(channel, rank.order, a);
        rank.calls[a.call].turn = static_cast<std::uint8_t>(turn);
        rank.calls[a.call].meet = static_cast<std::uint32_t>(meet);
      }
    }
    rank.arrivals = {};
    rank.first_arrow = next_arrow_;
    next_arrow_ += static_cast<std::int64_t>(rank.calls.size());
  }
  meets_ = Meets({});
}

const RankTimeline* Timeline::of(const read::Process& process) const {
  const auto found = ranks_.find(&process);
  return found == ranks_.end() ? nullptr : &found->second;
}

void Timeline::write_lanes(const Member& member, Pen& out) const {
  const auto steps = found_.ranks.find(member.process);
  if (steps != found_.ranks.end()) write_steps(steps->second, only_.steps, *member.to, out);
  const RankTimeline& rank = ranks_.at(member.process);
  if (rank.exposed) write_exposed(*rank.exposed, *member.to, out);
}

}  // namespace tprof::trace_export
