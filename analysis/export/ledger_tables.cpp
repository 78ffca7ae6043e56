#include "export/table_rows.h"

#include "interpose/format/schema.h"

namespace tprof::trace_export {
namespace {

Value how_found(steps::How how) {
  if (how == steps::How::none) return {};
  return how == steps::How::mark ? "mark" : "period";
}

const char* ended(const read::Process& p) {
  using read::End;
  switch (p.end) {
    case End::closed:
      return "closed";
    case End::recovered:
      return "recovered";
    case End::partial:
      return "partial";
    case End::running:
      return p.snapshot ? "snapshot" : "running";
    case End::lost:
    case End::dumped:
      break;
  }
  return "lost";
}

// A footer is the whole process's, so only its first rank gets the total.
Value total(const read::Process& p, std::map<std::string, std::uint64_t> read::Footer::*dropped) {
  if (!p.footer || p.lane != 0) return {};
  std::uint64_t all = 0;
  for (const auto& [reason, n] : (*p.footer).*dropped) all = read::saturated_sum(all, n);
  return all;
}

Value thread_of(const read::Row& row) {
  if (row.mode == Mode::replayed || row.thread == ThreadKind::mixed) return {};
  return row.thread == ThreadKind::autograd ? "autograd" : "other";
}

Value where(bool known, std::uint64_t ns) {
  return known ? Value(ns) : Value();
}

void write_row(std::int64_t number, const read::Process& p, const read::Row& row, TableWriter& to) {
  const read::Amounts& a = row.amounts;
  const bool timed = a.device_timed != 0;
  const bool known = a.exposure_known != 0;
  const bool called = row.mode != Mode::replayed;
  to.row(TableName::ledger, {number,
                             p.header.rank,
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
                             where(called, a.host_ns),
                             where(called, a.host_ns_max),
                             a.device_timed,
                             where(timed, a.device_ns),
                             where(timed, a.device_ns_max),
                             a.exposure_known,
                             where(known, a.exposure_known_ns),
                             where(known, a.exposed_ns),
                             where(known, a.exposed_ns_max),
                             where(known, a.late),
                             a.failed,
                             a.unfinished});
}

}  // namespace

void write_job(const Exported& of, TableWriter& to) {
  const bool known = of.found.how != steps::How::none;
  to.row(TableName::job, {kTablesVersion, kVersion, of.job.run_id, of.job.attempt,
                          of.job.world_size, of.base_time_ns, of.clocks, how_found(of.found.how),
                          known ? Value(of.found.whole_steps) : Value(),
                          of.asked == nullptr ? "" : of.asked->words().sentence()});
}

void write_process(const Exported& of, const read::Process& p, TableWriter& to) {
  const Exported::Rank& rank = of.ranks.at(&p);
  const read::Header& h = p.header;
  to.row(TableName::processes,
         {rank.number, h.rank, h.world_size, h.host, h.boot_id, h.pid,
          p.lanes > 1 ? Value(p.device) : Value(), h.start_ns, ended(p),
          total(p, &read::Footer::dropped), total(p, &read::Footer::ranges_dropped), h.nccl_version,
          h.cudart_version, h.command, p.file});
  for (const auto& [number, comm] : p.comms) {
    if (of.asked != nullptr && !of.asked->calls().on(p, number)) continue;
    to.row(TableName::communicators,
           {rank.number, h.rank, number, comm.known() ? Value(comm.id) : Value(), comm.name,
            comm.nranks, comm.rank < 0 ? Value() : Value(comm.rank),
            comm.rank < 0 ? Value() : Value(comm.device), comm.parent});
  }
  const read::Rows& rows = of.asked == nullptr ? read::rows_of(p) : of.asked->lines().rows(p);
  for (const read::Row& row : rows) write_row(rank.number, p, row, to);
  const auto steps = of.found.ranks.find(&p);
  if (steps == of.found.ranks.end()) return;
  for (const steps::Interval& step : steps->second) {
    if (!of.has_step(step.step)) continue;
    const std::int64_t from = rank.at.moved(step.from_ns);
    to.row(TableName::steps,
           {rank.number, h.rank, step.step, from, rank.at.moved(step.to_ns) - from});
  }
}

}  // namespace tprof::trace_export
