#include "check/stuck.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "check/ends.h"

namespace tprof::check {

namespace {

using read::End;
using read::Process;

std::optional<Stuck> stuck_at(const Process& p, const Operation& call, const Case& c,
                              const Waits& waits) {
  const Membership& in = *c.membership(p, call.comm);
  const Communicator& comm = c.communicators[in.communicator];
  Stuck stuck{
      .call = &call, .communicator = &comm, .called_ns = p.header.base_time_ns + call.ts_ns};
  std::size_t parts = 0;
  for (const Member& m : comm.members) {
    if (call.message() && &m != in.member && m.comm->rank != call.peer) continue;
    if (c.older.has(m.process)) return std::nullopt;
    ++parts;
    if (!call.message() && c.calls(*m.process).is_through(m.comm->comm, call.seq)) {
      if (call.all_wait()) return std::nullopt;  // a device that did not end it is lost
      continue;
    }
    if (!waits.fronts.contains(m.process) || waits.on.contains(m.process)) return std::nullopt;
    stuck.who.push_back(m.process);
    const bool begun =
        call.message() || !m.dumped() || m.done == nullptr || m.done->started > call.seq;
    if (!begun) stuck.idle.push_back(m.process);
  }
  const std::size_t all = call.message() ? 2 : static_cast<std::size_t>(comm.nranks);
  if (parts != all) return std::nullopt;
  if (stuck.idle.size() == stuck.who.size()) stuck.idle.clear();
  return stuck;
}

}  // namespace

std::vector<Stuck> stuck_calls(const Case& c, const Waits& waits) {
  std::vector<Stuck> all;
  std::set<const Process*> known;
  std::set<std::pair<std::size_t, std::uint64_t>> collectives;  // that were looked at
  const bool stands = stand(c.job.processes, c);
  for (const Process* p : c.job.processes) {
    const auto front = waits.fronts.find(p);
    if (front == waits.fronts.end() || known.contains(p) || (p->end != End::dumped && !stands)) {
      continue;
    }
    const Operation& call = *front->second;
    const std::size_t comm = c.membership(*p, call.comm)->communicator;
    if (!call.message() && !collectives.emplace(comm, call.seq).second) continue;
    auto stuck = stuck_at(*p, call, c, waits);
    if (!stuck) continue;
    known.insert(stuck->who.begin(), stuck->who.end());
    all.push_back(*std::move(stuck));
  }
  std::ranges::stable_sort(all, {}, &Stuck::called_ns);
  return all;
}

}  // namespace tprof::check
