#include "export/line_tables.h"

#include <cmath>

#include "stats/totals.h"

namespace tprof::trace_export {
namespace {

using read::Process;
using Phase = read::Range::Phase;

const char* outcome(const read::Event& e) {
  if (e.unfinished) return "unfinished";
  if (e.failed) return "failed";
  return e.captured ? "captured" : "executed";
}

// A dtype that is newer than we know has elements of an unknown size.
Value elements(const read::Event& e) {
  const std::uint64_t n = stats::amounts_of(e).elements;
  return n == 0 && e.bytes != 0 ? Value() : Value(n);
}

Value number(const std::optional<long double>& v) {
  constexpr long double kPast = 9223372036854775808.0L;  // 2^63
  if (!v) return {};
  if (*v == std::floor(*v) && *v >= -kPast && *v < kPast) return static_cast<std::int64_t>(*v);
  return static_cast<double>(*v);
}

Value or_null(std::uint64_t told) {
  return told == 0 ? Value() : Value(told);
}

const char* kind(const read::Range& r) {
  if (r.phase == Phase::mark) return "mark";
  return r.id.empty() ? "pushed" : "started";
}

}  // namespace

void LineTables::write(const read::Trace& trace) {
  ranks_.clear();
  read::LineReader reader;
  if (of_.asked != nullptr) reader.chosen = of_.asked->chosen();
  reader.wanted = [&](const Process& p) { return of_.ranks.contains(&p); };
  reader.event = [&](const Process& p, const read::Event& e) { rank_of(p).calls.call(e); };
  reader.device_time = [&](const Process& p, const read::DeviceTime& t) {
    rank_of(p).calls.time(t);
  };
  reader.range = [&](const Process& p, const read::Range& r) { range(p, r); };
  reader.thread = [&](const Process& p, const read::ThreadName& t) {
    std::set<std::int64_t>& known = rank_of(p).threads;
    if (known.size() == kMostThreads || !known.insert(t.thread).second) return;
    to_.row(TableName::threads, {of_.ranks.at(&p).number, p.header.rank, t.thread, t.name});
  };
  reader.end = [&](const Process& p) {
    Rank& rank = rank_of(p);
    rank.calls.finish();
    for (const auto& [id, r] : rank.started.open()) put(p, r, r.ts_ns, std::nullopt);
    ranks_.erase(&p);
  };
  read::read_lines(trace, reader);
}

LineTables::Rank& LineTables::rank_of(const Process& process) {
  const auto known = ranks_.find(&process);
  if (known != ranks_.end()) return known->second;
  const Process* p = &process;
  const auto put_call = [this, p](const read::Event& e, const read::DeviceTime* t) {
    call(*p, e, t);
  };
  return ranks_.try_emplace(p, Rank{stats::TimedCalls(put_call)}).first->second;
}

void LineTables::call(const Process& p, const read::Event& e, const read::DeviceTime* t) {
  if (!e.chosen) return;
  const Exported::Rank& rank = of_.ranks.at(&p);
  to_.row(TableName::calls, {rank.number,
                             p.header.rank,
                             e.thread,
                             bucket_name(e.bucket),
                             e.name,
                             e.comm,
                             e.numbered ? Value(e.seq) : Value(),
                             e.peer,
                             e.reduce,
                             e.dtype,
                             e.count,
                             elements(e),
                             e.bytes,
                             e.device,
                             host_memory_name(e.host_memory),
                             e.stream,
                             outcome(e),
                             rank.at.moved(e.ts_ns),
                             e.unfinished ? Value() : Value(e.dur_ns),
                             t == nullptr ? Value() : Value(rank.at.moved(t->ts_ns)),
                             t == nullptr ? Value() : Value(t->dur_ns),
                             t == nullptr ? Value() : Value(t->calls),
                             steps::step_at(of_.found, &p, e.ts_ns)});
}

void LineTables::range(const Process& p, const read::Range& r) {
  auto& started = rank_of(p).started;
  switch (r.phase) {
    case Phase::closed:
      return put(p, r, r.ts_ns, r.ts_ns + r.dur_ns);
    case Phase::mark:
      return put(p, r, r.ts_ns, std::nullopt);
    case Phase::started:
      return started.start(r);
    case Phase::open:
      started.end(r);
      return put(p, r, r.ts_ns, std::nullopt);
    case Phase::ended:
      return put(p, r, started.end(r), r.ts_ns);
  }
}

void LineTables::put(const Process& p, const read::Range& r,
                     const std::optional<std::int64_t>& from_ns,
                     const std::optional<std::int64_t>& to_ns) {
  if (!of_.has_range(p, from_ns.value_or(r.ts_ns))) return;
  const Exported::Rank& rank = of_.ranks.at(&p);
  const auto from = from_ns ? Value(rank.at.moved(*from_ns)) : Value();
  to_.row(TableName::ranges,
          {rank.number, p.header.rank, r.thread, r.name, r.domain, r.category_name,
           r.category == 0 ? Value() : Value(r.category), r.color, number(r.payload),
           or_null(r.elements), or_null(r.bytes), r.error, kind(r), from,
           from_ns && to_ns ? Value(*to_ns - *from_ns) : Value(),
           from_ns ? Value(steps::step_at(of_.found, &p, *from_ns)) : Value()});
}

}  // namespace tprof::trace_export
