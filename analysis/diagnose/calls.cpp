#include "diagnose/calls.h"

#include <fmt/format.h>

#include "collect/collectors.h"
#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::diagnose {

using read::Event;
using read::Process;

std::string what_of(const Event& e) {
  if (e.launch) return e.name;
  std::string out = fmt::format("{} of {} {}", e.name, text::thousands(e.count), e.dtype);
  if (!e.reduce.empty()) out += ", " + e.reduce;
  if (e.peer) out += fmt::format(", {} {}", e.collective() ? "root" : "peer", *e.peer);
  return out;
}

std::string describe(const Event& e, const Process& p) {
  return what_of(e) + (e.captured ? ", captured into a graph" : "") + ", at " +
         utc(p.header.base_time_ns + e.ts_ns);
}

void each_collective(const Member& m, std::uint64_t from, std::uint64_t to,
                     const read::Traces& traces, const std::function<void(const Event&)>& see) {
  for (const read::Trace& trace : traces.traces) {
    const Process* first = trace.processes.data();
    if (std::less()(m.process, first) || !std::less()(m.process, first + trace.processes.size())) {
      continue;
    }
    read::read_lines(trace, {.wanted = [&](const Process& p) { return &p == m.process; },
                             .event =
                                 [&](const Process&, const Event& e) {
                                   if (e.collective() && e.comm == m.comm->comm && !e.failed &&
                                       !e.unfinished && e.seq >= from && e.seq < to) {
                                     see(e);
                                   }
                                 }});
    return;
  }
}

std::optional<KnownCall> CallFinder::find(const Members& callers, std::uint64_t seq) {
  const Member* returned = nullptr;  // the first whose file has a line of it
  for (const Member* m : callers) {
    const auto* calls = case_.lines.of<collect::LastCalls>(m->process);
    if (calls == nullptr) continue;
    for (const Event& e : calls->open) {
      if (e.collective() && e.comm == m->comm->comm && e.seq == seq) return KnownCall{m, e};
    }
    const auto last = calls->last_collective.find(m->comm->comm);
    if (last != calls->last_collective.end() && last->second.seq == seq) {
      return KnownCall{m, last->second};
    }
    const collect::Intervals& lines =
        case_.lines.of<collect::ReturnedCalls>(m->process)->collectives(m->comm->comm);
    if (returned == nullptr && lines.covered_until(seq) > seq) {
      returned = m;
    }
  }
  if (returned == nullptr || files_read_ == kMaxFilesRead) return std::nullopt;
  ++files_read_;
  std::optional<KnownCall> call;
  each_collective(*returned, seq, seq + 1, case_.traces, [&](const Event& e) {
    if (!call) call = KnownCall{returned, e};
  });
  return call;
}

}  // namespace tprof::diagnose
