#include "export/other_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <utility>

#include "export/pen.h"
#include "read/error.h"
#include "read/events.h"
#include "text/text.h"

namespace tprof::trace_export {
namespace {

struct Call {
  align::Stay stay{};
  std::int64_t comm = 0;
  std::uint64_t seq = 0;
};

// The collectives of a process that have lines.
struct Calls {
  std::vector<Call> all{};  // by begin
  bool readable = true;
};

std::uint64_t elements_of(const read::Process& process, const read::Event& e) {
  const bool of_all = e.bucket == Bucket::ALLGATHER || e.bucket == Bucket::RESHARDING;
  const auto comm = process.comms.find(*e.comm);
  if (comm == process.comms.end()) return 0;
  return of_all ? e.count * static_cast<std::uint64_t>(comm->second.nranks) : e.count;
}

std::map<const read::Process*, Calls> calls_of(const std::vector<Marked>& marked,
                                               const read::Traces& traces) {
  std::map<const read::Process*, Calls> calls;
  for (const Marked& m : marked) {
    if (!m.collectives.empty()) calls[m.process];
  }
  read::LineReader reader;
  reader.wanted = [&](const read::Process& p) { return calls.contains(&p); };
  reader.event = [&](const read::Process& p, const read::Event& e) {
    if (!e.collective() || e.failed) return;
    const std::int64_t begin_ns = p.header.base_time_ns + e.ts_ns;
    const align::Stay stay{e.bucket, elements_of(p, e), begin_ns, begin_ns + e.dur_ns};
    calls[&p].all.push_back({stay, *e.comm, e.seq});
  };
  for (const read::Trace& trace : traces.traces) {
    if (std::ranges::none_of(trace.processes, reader.wanted)) continue;
    try {
      read::read_lines(trace, reader);
    } catch (const read::BadInput&) {  // reported when its lines are written
      for (const read::Process& p : trace.processes) {
        if (calls.contains(&p)) calls[&p].readable = false;
      }
    }
  }
  for (auto& [process, of] : calls) {
    std::ranges::sort(of.all, {}, [](const Call& call) { return call.stay.begin_ns; });
  }
  return calls;
}

// True if no line of its collectives is missing.
bool whole(const read::Process& process, const Calls& calls) {
  std::uint64_t issued = 0;
  for (const read::Collectives& c : read::collectives_of(process)) issued += c.count;
  return process.end != read::End::lost && calls.all.size() == issued;
}

// True if lines are missing outside of windows only.
bool in_windows(const read::Process& process) {
  if (!process.footer || process.end == read::End::lost) return false;
  return std::ranges::all_of(process.footer->dropped, [](const auto& dropped) {
    return dropped.first == "window" || dropped.second == 0;
  });
}

// Returns the calls of these kinds, split where a line is missing.
std::vector<std::vector<align::Stay>> stretches(const Calls& calls,
                                                const std::bitset<kBucketCount>& kinds) {
  std::vector<std::vector<align::Stay>> all(1);
  std::map<std::int64_t, std::uint64_t> next;  // next seq of each communicator
  for (const Call& call : calls.all) {
    const auto [place, first] = next.try_emplace(call.comm, call.seq);
    if (place->second != call.seq && !all.back().empty()) all.emplace_back();
    place->second = call.seq + 1;
    if (kinds.test(static_cast<std::size_t>(call.stay.kind))) all.back().push_back(call.stay);
  }
  if (all.back().empty()) all.pop_back();
  return all;
}

OtherClock clock_of(const Marked& marked, const Calls& calls) {
  if (!calls.readable) return {{}, "the lines of its rank can't be read"};
  std::bitset<kBucketCount> kinds;
  for (const align::Stay& s : marked.collectives) kinds.set(static_cast<std::size_t>(s.kind));
  const auto ours = stretches(calls, kinds);
  if (ours.empty()) return {{}, "no line here is of a collective that it marks"};
  const bool all = whole(*marked.process, calls);
  const auto shift = align::enclosing_shift(ours, marked.collectives, all);
  if (shift && shift->ns != 0 && !all && !in_windows(*marked.process)) {
    return {{}, "lines of our collectives are missing"};
  }
  if (shift) return {shift, ""};
  return {{},
          fmt::format("no shift, or more than one, puts our collectives into the {} that it marks",
                      text::thousands(marked.collectives.size()))};
}

}  // namespace

std::string OtherClock::sentence() const {
  if (!shift) return "the wall clock: " + why;
  return fmt::format("refined by {} collective{}, shifted {} us", shift->pairs,
                     shift->pairs == 1 ? "" : "s", micros(shift->ns));
}

std::vector<OtherClock> other_clocks(const std::vector<Marked>& marked,
                                     const read::Traces& traces) {
  const auto calls = calls_of(marked, traces);
  std::vector<OtherClock> clocks;
  for (const Marked& m : marked) {
    const auto of = calls.find(m.process);
    clocks.push_back(m.collectives.empty() || of == calls.end()
                         ? OtherClock{{}, "it marks no collective"}
                         : clock_of(m, of->second));
  }
  return clocks;
}

}  // namespace tprof::trace_export
