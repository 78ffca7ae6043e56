#include "export/table_rows.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "stats/started_ranges.h"
#include "stats/timed_calls.h"
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

// The state of a rank whose lines are being read.
class LineRows {
 public:
  LineRows(const Exported& of, const Process& p, TableWriter& to)
      : of_(of), process_(p), rank_(of.ranks.at(&p)), to_(to) {}

  void range(const read::Range& r);
  void thread(const read::ThreadName& t);
  void end();

  stats::TimedCalls calls{[this](const auto& e, const auto* t) { call(e, t); }};

 private:
  void call(const read::Event& e, const read::DeviceTime* t);
  void put(const read::Range& r, const std::optional<std::int64_t>& from_ns,
           const std::optional<std::int64_t>& to_ns);

  static constexpr std::size_t kMostThreads = 65536;

  const Exported& of_;
  const Process& process_;
  const Exported::Rank& rank_;
  TableWriter& to_;
  stats::StartedRanges started_{};
  std::set<std::int64_t> threads_{};
};

void LineRows::thread(const read::ThreadName& t) {
  if (threads_.size() == kMostThreads || !threads_.insert(t.thread).second) return;
  to_.row(TableName::threads, {rank_.number, process_.header.rank, t.thread, t.name});
}

void LineRows::end() {
  calls.finish();
  for (const auto& [id, r] : started_.open()) put(r, r.ts_ns, std::nullopt);
}

void LineRows::call(const read::Event& e, const read::DeviceTime* t) {
  if (!e.chosen) return;
  to_.row(TableName::calls, {rank_.number,
                             process_.header.rank,
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
                             rank_.at.moved(e.ts_ns),
                             e.unfinished ? Value() : Value(e.dur_ns),
                             t == nullptr ? Value() : Value(rank_.at.moved(t->ts_ns)),
                             t == nullptr ? Value() : Value(t->dur_ns),
                             t == nullptr ? Value() : Value(t->calls),
                             steps::step_at(of_.found, &process_, e.ts_ns)});
}

void LineRows::range(const read::Range& r) {
  switch (r.phase) {
    case Phase::closed:
      return put(r, r.ts_ns, r.ts_ns + r.dur_ns);
    case Phase::mark:
      return put(r, r.ts_ns, std::nullopt);
    case Phase::started:
      return started_.start(r);
    case Phase::open:
      started_.end(r);
      return put(r, r.ts_ns, std::nullopt);
    case Phase::ended:
      return put(r, started_.end(r), r.ts_ns);
  }
}

void LineRows::put(const read::Range& r, const std::optional<std::int64_t>& from_ns,
                   const std::optional<std::int64_t>& to_ns) {
  if (!of_.has_range(process_, from_ns.value_or(r.ts_ns))) return;
  const auto from = from_ns ? Value(rank_.at.moved(*from_ns)) : Value();
  to_.row(TableName::ranges,
          {rank_.number, process_.header.rank, r.thread, r.name, r.domain, r.category_name,
           r.category == 0 ? Value() : Value(r.category), r.color, number(r.payload),
           or_null(r.elements), or_null(r.bytes), r.error, kind(r), from,
           from_ns && to_ns ? Value(*to_ns - *from_ns) : Value(),
           from_ns ? Value(steps::step_at(of_.found, &process_, *from_ns)) : Value()});
}

}  // namespace

void write_lines(const Exported& of, const read::Trace& trace, TableWriter& to) {
  std::map<const Process*, LineRows> ranks;
  const auto rows_of = [&](const Process& p) -> LineRows& {
    return ranks.try_emplace(&p, of, p, to).first->second;
  };
  read::LineReader reader;
  if (of.asked != nullptr) reader.chosen = of.asked->chosen();
  reader.wanted = [&](const Process& p) { return of.ranks.contains(&p); };
  reader.event = [&](const Process& p, const read::Event& e) { rows_of(p).calls.call(e); };
  reader.device_time = [&](const Process& p, const auto& t) { rows_of(p).calls.time(t); };
  reader.range = [&](const Process& p, const read::Range& r) { rows_of(p).range(r); };
  reader.thread = [&](const Process& p, const read::ThreadName& t) { rows_of(p).thread(t); };
  reader.end = [&](const Process& p) {
    rows_of(p).end();
    ranks.erase(&p);
  };
  read::read_lines(trace, reader);
}

}  // namespace tprof::trace_export
