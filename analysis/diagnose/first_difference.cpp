#include "diagnose/first_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::Event;
using read::Process;

constexpr std::uint64_t kBefore = 3;         // operations shown before the difference
constexpr std::uint64_t kFrom = 3;           // and from it on
constexpr std::uint64_t kPart = 1ULL << 20;  // collectives compared at a time: 8 MiB a side

const read::Trace* trace_of(const read::Traces& traces, const Process& p) {
  for (const read::Trace& trace : traces.traces) {
    if (!trace.processes.empty() && &p >= trace.processes.data() &&
        &p < trace.processes.data() + trace.processes.size()) {
      return &trace;
    }
  }
  return nullptr;
}

// Calls f(event) for each line of a collective of this communicator.
template <typename F>
void each_collective(const Member& m, const read::Traces& traces, const F& f) {
  const read::Trace* trace = trace_of(traces, *m.process);
  if (trace == nullptr) return;
  read::read_lines(
      *trace, {.wanted = [&](const Process& p) { return &p == m.process; },
               .event =
                   [&](const Process&, const Event& e) {
                     if (e.collective() && e.comm == m.comm->comm && !e.failed && !e.unfinished) {
                       f(e);
                     }
                   }});
}

// 0: no line. 1: the rank did no more.
std::uint64_t fingerprint(const Event& e) {
  const std::string call =
      fmt::format("{}|{}|{}|{}|{}", e.name, e.count, e.dtype, e.peer.value_or(-1), e.reduce);
  return std::hash<std::string>{}(call) | 2;
}

std::vector<std::uint64_t> fingerprints(const Member& m, std::uint64_t from, std::uint64_t to,
                                        const read::Traces& traces) {
  std::vector<std::uint64_t> all(to - from, 0);
  for (std::uint64_t seq = std::max(from, m.count()); seq < to; ++seq) all[seq - from] = 1;
  each_collective(m, traces, [&](const Event& e) {
    if (e.seq >= from && e.seq < to) all[e.seq - from] = fingerprint(e);
  });
  return all;
}

const Intervals* lines_of(const Member& m, const Facts& facts) {
  const auto process = facts.find(m.process);
  if (process == facts.end()) return nullptr;
  const auto comm = process->second.collectives.find(m.comm->comm);
  return comm == process->second.collectives.end() ? nullptr : &comm->second;
}

// Up to where its lines tell what it did in [from, to).
std::uint64_t told_until(const Member& m, const Facts& facts, std::uint64_t from,
                         std::uint64_t to) {
  const Intervals* lines = lines_of(m, facts);
  const std::uint64_t until = lines == nullptr ? from : lines->covered_until(from);
  return until >= m.count() ? to : std::min(until, to);
}

const Member* best_told(const std::vector<const Member*>& members, const Facts& facts,
                        std::uint64_t from, std::uint64_t to) {
  const Member* best = members[0];
  std::uint64_t until = 0;
  for (const Member* m : members) {
    const std::uint64_t told = told_until(*m, facts, from, to);
    if (told > until) best = m, until = told;
    if (told == to) break;
  }
  return best;
}

// The first collective from `from` on of which either has a line.
std::optional<std::uint64_t> next_line(const Member& a, const Member& b, const Facts& facts,
                                       std::uint64_t from) {
  std::optional<std::uint64_t> first;
  for (const Member* m : {&a, &b}) {
    const Intervals* lines = lines_of(*m, facts);
    const auto next = lines == nullptr ? std::nullopt : lines->next(from);
    if (next && (!first || *next < *first)) first = next;
  }
  return first;
}

std::string name_of(const Member& m) {
  return m.rank() ? fmt::format("rank {}", *m.rank()) : diagnose::name_of(*m.process);
}

std::string coverage_of(const Member& m, const Facts& facts) {
  const Intervals* lines = lines_of(m, facts);
  if (lines == nullptr || lines->empty()) {
    return fmt::format("{} has no lines of it", name_of(m));
  }
  return fmt::format("lines of {} exist for its collectives {} to {}", name_of(m), lines->begin(),
                     lines->end() - 1);
}

}  // namespace

bool same_call(const Event& a, const Event& b) {
  return a.name == b.name && a.count == b.count && a.dtype == b.dtype && a.peer == b.peer &&
         a.reduce == b.reduce;
}

std::string describe(const Event& e, const Process& p) {
  if (e.launch) return e.name + ", at " + utc(p.header.base_time_ns + e.ts_ns);
  std::string out = fmt::format("{} of {} {}", e.name, report::thousands(e.count), e.dtype);
  if (!e.reduce.empty()) out += ", " + e.reduce;
  if (e.peer) out += fmt::format(", {} {}", e.collective() ? "root" : "peer", *e.peer);
  if (e.captured) out += ", captured into a graph";
  return out + ", at " + utc(p.header.base_time_ns + e.ts_ns);
}

std::vector<Event> collectives_between(const Member& m, std::uint64_t from, std::uint64_t to,
                                       const read::Traces& traces) {
  std::vector<Event> events;
  each_collective(m, traces, [&](const Event& e) {
    if (e.seq >= from && e.seq < to) events.push_back(e);
  });
  std::ranges::stable_sort(events, {}, &Event::seq);
  return events;
}

FirstDifference first_difference(const Split& split, const Facts& facts,
                                 const read::Traces& traces) {
  FirstDifference d;
  d.mine = best_told(split.groups[0], facts, split.same, split.end);
  d.theirs = best_told(split.others, facts, split.same, split.end);
  const auto unknown = [&] {
    if (!d.coverage.empty()) return;
    d.coverage = coverage_of(*d.mine, facts) + "; " + coverage_of(*d.theirs, facts);
  };
  // Only where there are lines: what a damaged file says of its counts may have no end.
  std::uint64_t from = split.same;
  while (!d.found && from < split.end) {
    const auto next = next_line(*d.mine, *d.theirs, facts, from);
    if (!next || *next >= split.end) {
      unknown();
      break;
    }
    if (*next > from) unknown();
    from = *next;
    const std::uint64_t to = from + std::min(kPart, split.end - from);
    const auto mine = fingerprints(*d.mine, from, to, traces);
    const auto theirs = fingerprints(*d.theirs, from, to, traces);
    for (std::uint64_t i = 0; i < to - from && !d.found; ++i) {
      const bool known = mine[i] != 0 && theirs[i] != 0;
      if (!known) unknown();
      d.found = known && mine[i] != theirs[i];
      d.seq = from + i;
    }
    from = to;
  }
  if (!d.found) return d;
  const std::uint64_t first = d.seq - std::min(kBefore, d.seq);
  for (Event& e : collectives_between(*d.theirs, first, d.seq + kFrom, traces)) {
    (e.seq < d.seq ? d.before : d.there).push_back(std::move(e));
  }
  d.here = collectives_between(*d.mine, d.seq, d.seq + kFrom, traces);
  return d;
}

void name_operation(Problem& p, const Split& split, const FirstDifference& d) {
  if (!d.found) {
    p.text += "; " + where(split);
    p.evidence.push_back("which operation it is, lines do not tell: " + d.coverage);
    p.next += "; for the operation, write the lines of these ranks (TPROF_RANKS, TPROF_QUOTA)";
    return;
  }
  const Process& theirs = *d.theirs->process;
  p.seq = d.seq;
  p.between = std::pair(d.seq, d.seq + 1);
  p.function = !d.there.empty() && d.there[0].seq == d.seq ? d.there[0].name
               : d.here.empty()                            ? ""
                                                           : d.here[0].name;
  p.text +=
      fmt::format("; {} difference: collective {}", d.coverage.empty() ? "first" : "a", d.seq);
  std::vector<std::string> operation;
  const auto sides = [&](const std::vector<Event>& events, const Member& member) {
    const Process& process = *member.process;
    const bool none = events.empty() || events[0].seq != d.seq;
    if (none) operation.push_back(fmt::format("{}, {}: no more", name_of(member), d.seq));
    for (std::size_t i = 0; !none && i < std::min<std::size_t>(events.size(), 2); ++i) {
      operation.push_back(
          fmt::format("{}, {}: {}", name_of(member), events[i].seq, describe(events[i], process)));
    }
  };
  for (const Event& e : d.before) {
    operation.push_back(fmt::format("both, {}: {}", e.seq, describe(e, theirs)));
  }
  sides(d.here, *d.mine);
  sides(d.there, *d.theirs);
  // How the rank goes on. Programs repeat themselves, so the next calls alone do not tell.
  const auto like = [&](std::size_t here, std::size_t there) {
    return d.here.size() > here && d.there.size() > there &&
           same_call(d.here[here], d.there[there]);
  };
  const std::uint64_t done = d.mine->count();
  const std::uint64_t others_done = d.theirs->count();
  if (done < others_done && like(0, 1)) {
    operation.push_back(fmt::format("{} goes on with what {} does next: it left this one out",
                                    name_of(*d.mine), name_of(*d.theirs)));
  } else if (done > others_done && like(1, 0)) {
    operation.push_back(fmt::format("{} then does what {} does here: this one is extra",
                                    name_of(*d.mine), name_of(*d.theirs)));
  } else if (done == others_done && like(0, 1) && like(1, 0)) {
    operation.push_back(fmt::format("{} does these two the other way round", name_of(*d.mine)));
  }
  if (!d.coverage.empty()) {
    operation.push_back("an earlier one may differ: " + d.coverage);
  }
  p.evidence.insert(p.evidence.begin(), operation.begin(), operation.end());
}

}  // namespace tprof::diagnose
