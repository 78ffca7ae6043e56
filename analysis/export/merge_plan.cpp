#include "export/merge_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "diagnose/names.h"

namespace tprof::trace_export {
namespace {

std::int64_t first_index(const Part& part) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Member& m : part.members) {
    if (m.to) first = std::min(first, m.sort_index);
  }
  return first;
}

// By how much later the clock of a node's file begins than that of a process on its host.
std::int64_t later_ns(const read::Header& of, const read::Header& node) {
  return of.monotonic_ns && node.monotonic_ns ? *node.monotonic_ns - *of.monotonic_ns
                                              : node.base_time_ns - of.base_time_ns;
}

// True if the process ran under the `tprof run` that wrote these lanes.
bool is_of_node(const read::Trace& trace, const read::Header& node) {
  if (trace.merged) return false;
  const read::Header& h = trace.processes.front().header;
  return h.boot_id == node.boot_id && h.run_id == node.run_id;
}

}  // namespace

// The epoch is how often the program's step numbers had begun again. If they never do, it is how
// often the counts had been reset.
std::string Member::position(std::int64_t ts_ns) const {
  const steps::Interval* step = steps::interval_of(*positions, process, ts_ns);
  std::optional<std::int64_t> epoch;
  if (positions->counted_on && step != nullptr) {
    epoch = step->epoch;
  } else if (!positions->counted_on && !process->epoch_ends.empty()) {
    epoch = std::ranges::count_if(process->epoch_ends,
                                  [&](const read::Ledger& end) { return end.ts_ns <= ts_ns; });
  }
  std::string out;
  if (step != nullptr) out = fmt::format(R"("step":{})", step->step);
  if (epoch) out += fmt::format(R"({}"epoch":{})", out.empty() ? "" : ",", *epoch);
  return out;
}

Members placements(const job::Job& job, const TimeAxis& axis,
                   const std::vector<const read::Process*>& chosen,
                   const std::vector<OtherFile>& others) {
  std::int64_t base = axis.base_ns(chosen);
  for (const OtherFile& other : others) {
    base = std::min(base, axis.zero_ns(*other.process) + other.begin_ns);
  }
  std::int64_t next_pid = std::max(job.world_size.value_or(0), std::int64_t{1});
  if (!job.ranks.empty()) next_pid = std::max(next_pid, job.ranks.back() + 1);
  std::set<std::int64_t> used;
  Members members;
  for (const read::Process* p : chosen) {
    const read::Header& h = p->header;
    const bool by_rank = h.rank && used.insert(*h.rank).second;
    const std::int64_t pid = by_rank ? *h.rank : next_pid++;
    const std::string title = p->lanes > 1 ? diagnose::name_of(*p)
                              : by_rank    ? fmt::format("rank {}", *h.rank)
                              : h.rank     ? fmt::format("rank {}, pid {}", *h.rank, h.pid)
                                           : fmt::format("pid {}", h.pid);
    members[p] = {p, axis.placement(*p, pid, base),
                  h.host.empty() ? title : title + " on " + h.host,
                  static_cast<std::int64_t>(members.size())};
  }
  return members;
}

std::vector<Part> parts_of(const read::Traces& traces, const Members& members) {
  std::vector<Part> parts;
  for (const read::Trace& trace : traces.traces) {
    Part part{&trace, {}};
    bool any = false;
    for (const read::Process& p : trace.processes) {
      const auto found = members.find(&p);
      any = any || found != members.end();
      part.members.push_back(found == members.end() ? Member{&p} : found->second);
    }
    if (any) parts.push_back(std::move(part));
  }
  std::ranges::stable_sort(parts, {}, first_index);
  return parts;
}

void add_nodes(const std::vector<read::Trace>& nodes, std::vector<Part>& parts) {
  for (const read::Trace& node : nodes) {
    const read::Process& writer = node.processes.front();
    auto lowest = parts.end();
    const Member* at = nullptr;
    for (auto part = parts.begin(); part != parts.end(); ++part) {
      if (part->of_node || !is_of_node(*part->trace, writer.header)) continue;
      for (const Member& m : part->members) {
        if (!m.to || (at != nullptr && m.to->pid >= at->to->pid)) continue;
        at = &m;
        lowest = part;
      }
    }
    if (at == nullptr) continue;
    Member member{&writer, at->to};
    member.to->shift_ns += later_ns(at->process->header, writer.header);
    member.of_node = true;
    parts.insert(lowest + 1, {&node, {std::move(member)}, true});
  }
}

std::vector<Beside> placed(const std::vector<OtherFile>& others, const Members& members) {
  std::vector<Beside> all;
  for (const OtherFile& other : others) {
    const auto member = members.find(other.process);
    if (member == members.end()) continue;
    // Its times are CLOCK_REALTIME of the host, as is ts 0 of the process, except for its shift.
    Placement to = *member->second.to;
    to.shift_ns -= other.process->header.base_time_ns;
    if (other.clock.shift) to.shift_ns += other.clock.shift->ns;
    all.push_back({&other, to});
  }
  return all;
}

}  // namespace tprof::trace_export
