// The tables and their rows.
#include <cmath>
#include <set>
#include <sstream>

#include "export/formats.h"
#include "interpose/format/schema.h"
#include "read/error.h"
#include "tables/ranges.h"

namespace tprof::trace_export {
namespace {

using read::Process;

// Columns are integers unless they have a type.
std::vector<TableInfo::Column> columns(const char* text) {
  std::vector<TableInfo::Column> all;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t colon = word.find(':');
    all.push_back(
        {word.substr(0, colon), colon == std::string::npos ? "INTEGER" : word.substr(colon + 1)});
  }
  return all;
}

template <typename T>
Value if_(bool known, const T& value) {
  return known ? Value(value) : Value();
}

const char* ended(const Process& p) {
  constexpr const char* kEnds[] = {"closed", "recovered", "partial", "running", "lost", "lost"};
  const bool seen = p.end != read::End::running || !p.snapshot;
  return seen ? kEnds[static_cast<int>(p.end)] : "snapshot";
}

const char* outcome(const read::Event& e) {
  if (e.unfinished) return "unfinished";
  if (e.failed) return "failed";
  return e.captured ? "captured" : "executed";
}

const char* kind(const read::Range& r) {
  if (r.phase == read::Range::Phase::mark) return "mark";
  return r.id.empty() ? "pushed" : "started";
}

// A footer is for the whole process, so only its first rank gets the total.
Value total(const Process& p, std::map<std::string, std::uint64_t> read::Footer::*dropped) {
  if (!p.footer || p.lane != 0) return {};
  std::uint64_t all = 0;
  for (const auto& [reason, n] : (*p.footer).*dropped) all = read::saturated_sum(all, n);
  return all;
}

Value thread_of(const read::Row& row) {
  if (row.mode == Mode::replayed || row.thread == ThreadKind::mixed) return {};
  return row.thread == ThreadKind::autograd ? "autograd" : "other";
}

Value number(const std::optional<long double>& v) {
  constexpr long double kPast = 9223372036854775808.0L;  // 2^63
  if (!v) return {};
  if (*v == std::floor(*v) && *v >= -kPast && *v < kPast) return static_cast<std::int64_t>(*v);
  return static_cast<double>(*v);
}

// Writes the rows of one process.
class ProcessRows {
 public:
  ProcessRows(const Exported& of, const Process& p, TableWriter& to)
      : of_(of), p_(p), number_(of.ranks.at(&p).number), at_(of.ranks.at(&p).at), to_(to) {}

  // Writes the rows that are of no line.
  void begin() {
    const read::Header& h = p_.header;
    to_.row(TableName::processes,
            {number_, h.rank, h.world_size, h.host, h.boot_id, h.pid, if_(p_.lanes > 1, p_.device),
             h.start_ns, ended(p_), total(p_, &read::Footer::dropped),
             total(p_, &read::Footer::ranges_dropped), h.nccl_version, h.cudart_version, h.command,
             p_.file});
    for (const auto& [number, comm] : p_.comms) {
      if (of_.asked != nullptr && !of_.asked->calls().on(p_, number)) continue;
      to_.row(TableName::communicators,
              {number_, h.rank, number, if_(comm.known(), comm.id), comm.name, comm.nranks,
               if_(comm.rank >= 0, comm.rank), if_(comm.rank >= 0, comm.device), comm.parent});
    }
    for (const read::Row& row : of_.lines.rows(p_)) ledger(row);
    if (const auto steps = of_.found.ranks.find(&p_); steps != of_.found.ranks.end()) {
      for (const steps::Interval& i : steps->second) step(i);
    }
  }

  // From the lines.
  void timed(const read::Event& e, const read::DeviceTime* t) {
    if (e.chosen) call(e, t);
  }
  void thread(const read::ThreadName& t) {
    if (!threads_.insert(t.thread).second) return;
    to_.row(TableName::threads, {number_, p_.header.rank, t.thread, t.name});
  }
  void range(const read::Range& r) {
    using enum read::Range::Phase;
    if (r.phase == started) return started_.start(r);
    const auto began = r.phase == ended ? started_.end(r) : r.ts_ns;
    if (r.phase == open) started_.end(r);
    Moment to_ns;
    if (r.phase == closed) to_ns = r.ts_ns + r.dur_ns;
    if (r.phase == ended) to_ns = r.ts_ns;
    range(r, began, to_ns);
  }
  void end() {
    for (const auto& [id, r] : started_.open()) range(r, r.ts_ns, {});
  }

 private:
  using Moment = std::optional<std::int64_t>;  // nullopt: not known

  void ledger(const read::Row& row) {
    const read::Amounts& a = row.amounts;
    const bool timed = a.device_timed != 0;
    const bool known = a.exposure_known != 0;
    const bool called = row.mode != Mode::replayed;
    to_.row(TableName::ledger, {number_,
                                p_.header.rank,
                                bucket_name(row.bucket),
                                row.name,
                                row.dtype,
                                row.comm,
                                row.device,
                                host_memory_name(row.host_memory),
                                row.bytes_class,
                                mode_name(row.mode),
                                thread_of(row),
                                a.calls,
                                a.count,
                                a.elements,
                                a.bytes,
                                if_(called, a.host_ns),
                                if_(called, a.host_ns_max),
                                a.device_timed,
                                if_(timed, a.device_ns),
                                if_(timed, a.device_ns_max),
                                a.exposure_known,
                                if_(known, a.exposure_known_ns),
                                if_(known, a.exposed_ns),
                                if_(known, a.exposed_ns_max),
                                if_(known, a.late),
                                a.failed,
                                a.unfinished});
  }

  void step(const steps::Interval& i) {
    if (of_.asked != nullptr && of_.asked->filter().steps &&
        !of_.asked->filter().steps->holds(i.step)) {
      return;
    }
    const std::int64_t from = at_.moved(i.from_ns);
    to_.row(TableName::steps, {number_, p_.header.rank, i.step, from, at_.moved(i.to_ns) - from});
  }

  void call(const read::Event& e, const read::DeviceTime* t) {
    const read::DeviceTime time = t == nullptr ? read::DeviceTime() : *t;
    // Elements of an unknown dtype have an unknown size.
    const std::uint64_t elements = read::amounts_of(e).elements;
    to_.row(TableName::calls, {number_,
                               p_.header.rank,
                               e.thread,
                               bucket_name(e.bucket),
                               e.name,
                               e.comm,
                               if_(e.numbered, e.seq),
                               e.peer,
                               e.reduce,
                               e.dtype,
                               e.count,
                               if_(elements != 0 || e.bytes == 0, elements),
                               e.bytes,
                               e.device,
                               host_memory_name(e.host_memory),
                               e.stream,
                               outcome(e),
                               at_.moved(e.ts_ns),
                               if_(!e.unfinished, e.dur_ns),
                               if_(t != nullptr, at_.moved(time.ts_ns)),
                               if_(t != nullptr, time.dur_ns),
                               if_(t != nullptr, time.calls),
                               steps::step_at(of_.found, &p_, e.ts_ns)});
  }

  void range(const read::Range& r, Moment from_ns, Moment to_ns) {
    if (!of_.has_range(p_, from_ns.value_or(r.ts_ns))) return;
    const std::int64_t from = from_ns.value_or(0);
    to_.row(
        TableName::ranges,
        {number_, p_.header.rank, r.thread, r.name, r.domain, r.category_name,
         if_(r.category != 0, r.category), r.color, number(r.payload),
         if_(r.elements != 0, r.elements), if_(r.bytes != 0, r.bytes), r.error, kind(r),
         if_(from_ns.has_value(), at_.moved(from)), if_(from_ns && to_ns, to_ns.value_or(0) - from),
         from_ns ? Value(steps::step_at(of_.found, &p_, from)) : Value()});
  }

  const Exported& of_;
  const Process& p_;
  const std::int64_t number_;
  const Placement& at_;
  TableWriter& to_;
  std::set<std::int64_t> threads_{};
  tables::StartedRanges started_{};
};

}  // namespace

const std::vector<TableInfo>& tables() {
  static const std::vector<TableInfo> kAll = {
      {"job",
       columns("tables_version tprof_version:TEXT run_id:TEXT attempt world_size base_time_ns "
               "clocks:TEXT steps_found:TEXT steps_whole chosen:TEXT"),
       {}},
      {"processes",
       columns("process rank world_size host:TEXT boot_id:TEXT pid device start_ns ended:TEXT "
               "calls_without_line ranges_without_line nccl_version cudart_version command:TEXT "
               "file:TEXT"),
       {"rank"}},
      {"threads", columns("process rank thread name:TEXT"), {"process, thread"}},
      {"communicators",
       columns("process rank comm id:TEXT name:TEXT nranks rank_in_comm device parent"),
       {"process, comm", "id"}},
      {"ledger",
       columns("process rank bucket:TEXT function:TEXT dtype:TEXT comm device host_memory:TEXT "
               "bytes_class mode:TEXT thread:TEXT calls count elements bytes host_ns host_ns_max "
               "device_timed device_ns device_ns_max exposure_known exposure_known_ns exposed_ns "
               "exposed_ns_max late failed unfinished"),
       {"function, rank"}},
      {"calls",
       columns("process rank thread bucket:TEXT function:TEXT comm seq peer reduce:TEXT dtype:TEXT "
               "count elements bytes device host_memory:TEXT stream outcome:TEXT ts_ns host_ns "
               "device_ts_ns device_ns device_calls step"),
       {"function, rank", "bucket", "process, ts_ns", "step"}},
      {"ranges",
       columns("process rank thread name:TEXT domain:TEXT category:TEXT category_number color:TEXT "
               "payload:NUMERIC elements bytes error:TEXT kind:TEXT ts_ns ns step"),
       {"name, rank", "process, thread, ts_ns"}},
      {"steps", columns("process rank step ts_ns ns"), {"step"}},
  };
  return kAll;
}

void leave_out_unreadable(const run::Lines& lines, std::vector<const read::Process*>& processes,
                          std::vector<read::Skipped>& skipped) {
  std::erase_if(processes, [&](const read::Process* p) { return lines.history(*p) == nullptr; });
  for (const read::Skipped& file : lines.unreadable()) {
    const std::string what = file.reason.substr(0, file.reason.rfind(';'));
    if (processes.empty()) throw read::BadInput(what);
    skipped.push_back({what + "; left out", true});
  }
}

void write_tables(const Exported& of, TableWriter& to,
                  const std::function<void(std::size_t)>& progress) {
  const bool known = of.found.how != steps::How::none;
  const char* how = of.found.how == steps::How::mark ? "mark" : "period";
  to.row(TableName::job,
         {kTablesVersion, kVersion, of.job.run_id, of.job.attempt, of.job.world_size,
          of.base_time_ns, of.clocks, if_(known, how), if_(known, of.found.whole_steps), of.only});
  std::size_t done = 0;
  for (const Process* p : of.processes) {
    of.show(*p, [&](const Process& rank) {
      ProcessRows rows(of, rank, to);
      rows.begin();
      return rows;
    });
    progress(++done);
  }
  to.finish();
}

}  // namespace tprof::trace_export
