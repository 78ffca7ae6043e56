#include "diagnose/calls.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "diagnose/last_calls.h"
#include "stats/sites.h"

namespace tprof::diagnose {

using read::Event;
using read::Process;

namespace {

auto compared(const Event& e) {
  return std::tie(e.name, e.count, e.dtype, e.reduce, e.peer);
}

}  // namespace

Fact fact_of(const Event& e) {
  if (e.launch || e.dtype.empty())
    return {Say::launch, {{"function", e.name}, {"captured", false}, {"at", std::nullopt}}};
  return {Say::call,
          {{"function", e.name},
           {"count", e.count},
           {"dtype", e.dtype},
           {"bytes", e.dtype == "byte" && e.count != 1},
           {"reduce", e.reduce},
           {"collective", e.collective()},
           {"peer", e.peer},
           {"captured", false},
           {"at", std::nullopt}}};
}

Fact fact_of(const Event& e, const Process& p) {
  Fact fact = fact_of(e);
  set(fact, {"captured", e.captured});
  set(fact, {"at", Time{called_ns(e, p)}});
  return fact;
}

bool alike(const Event& a, const Event& b) {
  return compared(a) == compared(b);
}

std::uint64_t fingerprint(const Event& e) {
  std::uint64_t hash = 0;
  const auto add = [&](auto value) {
    hash = (hash ^ std::hash<decltype(value)>()(value)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  add(std::string_view(e.name));
  add(e.count);
  add(std::string_view(e.dtype));
  add(std::string_view(e.reduce));
  add(e.peer);
  return hash;
}

std::int64_t called_ns(const Event& e, const Process& p) {
  return p.header.base_time_ns + e.ts_ns;
}

const read::Trace* trace_of(const Process& p, const read::Traces& traces) {
  const auto holds = [&](const read::Trace& trace) {
    const Process* first = trace.processes.data();
    return !std::less()(&p, first) && std::less()(&p, first + trace.processes.size());
  };
  const auto trace = std::ranges::find_if(traces.traces, holds);
  return trace == traces.traces.end() ? nullptr : &*trace;
}

std::optional<std::string> made_at(const Event& e, const Process& p, const read::Traces& traces) {
  const read::Trace* trace = trace_of(p, traces);
  if (e.site == 0 || trace == nullptr || trace->processes.size() != 1) return std::nullopt;
  stats::SiteLines sites;
  read::read_lines(*trace, {.metadata = [&](const read::Line& line) { sites.add(p, line); }});
  const stats::SiteKey* site = sites.find(e.site);
  const read::SiteFrame* frame = site == nullptr ? nullptr : stats::program_frame(*site);
  return frame == nullptr ? std::nullopt : std::optional(stats::text_of(*frame));
}

void each_collective(const Member& m, std::uint64_t from, std::uint64_t to,
                     const read::Traces& traces, const std::function<void(const Event&)>& see) {
  const read::Trace* trace = trace_of(*m.process, traces);
  if (trace == nullptr) return;
  read::read_lines(*trace, {.wanted = [&](const Process& p) { return &p == m.process; },
                            .event =
                                [&](const Process&, const Event& e) {
                                  if (e.collective() && e.comm == m.comm->comm && !e.failed &&
                                      e.seq >= from && e.seq < to) {
                                    see(e);
                                  }
                                }});
}

std::optional<KnownCall> CallFinder::find(const Members& callers, std::uint64_t seq) {
  const Member* returned = nullptr;  // the first whose file has a line of it
  for (const Member* m : callers) {
    const auto* calls = case_.lines.of<LastCalls>(m->process);
    if (calls == nullptr) continue;
    for (const Event& e : calls->open) {
      if (e.collective() && e.comm == m->comm->comm && e.seq == seq) return KnownCall{m, e};
    }
    const auto last = calls->last_collective.find(m->comm->comm);
    if (last != calls->last_collective.end() && last->second.seq == seq) {
      return KnownCall{m, last->second};
    }
    const Intervals& lines = case_.lines.of<ReturnedCalls>(m->process)->collectives(m->comm->comm);
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
