#include "job/launches.h"

#include <algorithm>
#include <limits>

namespace tprof::match {
namespace {

using read::Process;

// When it was last heard of; never, where it may have lived on.
std::int64_t end_ns(const Process& p) {
  if (p.end == read::End::lost || p.end == read::End::running || p.ledgers.empty()) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return p.header.base_time_ns + p.ledgers.rbegin()->second.ts_ns;
}

bool lived_together(const Process& a, const Process& b) {
  return end_ns(a) >= b.header.start_ns && end_ns(b) >= a.header.start_ns;
}

bool launched_apart(const Process& a, const Process& b) {
  return a.header.launcher && b.header.launcher &&
         (a.header.launcher != b.header.launcher || a.header.boot_id != b.header.boot_id);
}

}  // namespace

bool Launch::started(const Process& p) const {
  return p.comms.empty() && p.header.launcher &&
         pids_.contains({p.header.boot_id, p.header.launcher->pid});
}

bool Launch::clashes_with(const Process& p, const Process& other) const {
  if (!p.comms.empty() && !other.comms.empty()) return p.header.rank.has_value();
  if (!p.header.rank) return p.header.run_id.empty() && !lived_together(p, other);
  if (!lived_together(p, other)) return true;
  return p.comms.empty() && other.comms.empty() && launched_apart(p, other);
}

bool Launch::clashes(const Processes& group) const {
  return std::ranges::any_of(group, [&](const Process* p) {
    if (started(*p)) return false;
    const auto [first, last] = by_rank_.equal_range(p->header.rank);
    return std::any_of(first, last,
                       [&](const auto& other) { return clashes_with(*p, *other.second); });
  });
}

bool Launch::connected(const Processes& group) const {
  return std::ranges::any_of(group, [&](const Process* p) {
    const read::Header& h = p->header;
    if (parents_.contains({h.boot_id, h.pid})) return true;
    if (rendezvous_.contains({h.rendezvous, h.world_size.value_or(0)})) return true;
    return h.launcher && (launchers_.contains({h.boot_id, *h.launcher}) ||
                          pids_.contains({h.boot_id, h.launcher->pid}));
  });
}

void Launch::add(const Processes& group) {
  assumed_ = assumed_ || (!processes_.empty() && !connected(group));
  for (const Process* p : group) {
    const read::Header& h = p->header;
    if (processes_.empty() || h.start_ns < start_ns_) start_ns_ = h.start_ns;
    processes_.push_back(p);
    if (!started(*p)) by_rank_.emplace(h.rank, p);
    pids_.emplace(h.boot_id, h.pid);
    if (!h.rendezvous.empty()) rendezvous_.emplace(h.rendezvous, h.world_size.value_or(0));
    if (!h.launcher) continue;
    launchers_.emplace(h.boot_id, *h.launcher);
    parents_.emplace(h.boot_id, h.launcher->pid);
  }
}

}  // namespace tprof::match
