#include "diagnose/last_collectives.h"

#include <algorithm>

namespace tprof::diagnose {
namespace {

using read::Event;

// Hosts run ahead of a device that stands still, but not for long: most steps wait for a value.
constexpr std::size_t kMost = 64;

Called called(const Event& e, std::int64_t stream) {
  return {e.name, *e.comm, e.seq, e.ts_ns, e.thread, stream, e.group != 0};
}

// A captured call runs in the order of its graph, whenever that is launched.
bool counts(const Event& e) {
  return e.collective() && e.comm && !e.failed && !e.captured;
}

}  // namespace

void LastCollectives::call(const Event& e) {
  if (!counts(e)) return;
  const Called mine = called(e, e.stream.value_or(Called::kNoStream));
  if (all.size() < kMost) {
    all.push_back(mine);
  } else {
    all[oldest_++ % kMost] = mine;
  }
}

void LastCollectives::last_call(const Event& e) {
  if (!counts(e) || of_ring_.size() == kMost) return;
  of_ring_.push_back(called(e, Called::kNoStream));
}

void LastCollectives::device_time(const read::DeviceTime& t) {
  if (!t.comm || !t.seq) return;
  std::uint64_t& behind = through[*t.comm];
  behind = std::max(behind, *t.seq + t.calls);
}

void LastCollectives::end() {
  for (const Called& mine : of_ring_) {
    const auto same = [&](const Called& c) { return c.comm == mine.comm && c.seq == mine.seq; };
    if (std::ranges::none_of(all, same)) all.push_back(mine);
  }
  of_ring_ = {};
  std::ranges::stable_sort(all, {}, &Called::ts_ns);
  const auto on_another = [&](const Called& c) { return c.comm != all[0].comm; };
  if (std::ranges::none_of(all, on_another)) {
    all.clear();
    through.clear();
  }
  all.shrink_to_fit();
}

bool LastCollectives::is_through(std::int64_t comm, std::uint64_t seq) const {
  const auto behind = through.find(comm);
  return behind != through.end() && behind->second > seq;
}

bool LastCollectives::is_not_through(std::int64_t comm, std::uint64_t seq) const {
  const auto timing = rank_.header.config->find("TPROF_TIMING");
  const bool all_timed = timing != rank_.header.config->end() &&
                         (timing->second == "events" || timing->second == "cupti");
  if (!all_timed || through.empty()) return false;
  const auto behind = through.find(comm);
  return (behind == through.end() ? 0 : behind->second) == seq;
}

}  // namespace tprof::diagnose
