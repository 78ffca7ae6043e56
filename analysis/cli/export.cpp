#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/time_axis.h"
#include "export/csv_writer.h"
#include "export/ledger_tables.h"
#include "export/line_tables.h"
#include "export/sqlite_writer.h"
#include "read/error.h"
#include "report/report.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

std::unique_ptr<trace_export::TableWriter> writer_of(const Options& o) {
  if (o.sqlite.empty() == o.csv.empty()) {
    throw read::BadInput("expected --sqlite FILE or --csv DIR: where to");
  }
  if (o.csv.empty()) return std::make_unique<trace_export::SqliteWriter>(o.sqlite);
  return std::make_unique<trace_export::CsvWriter>(o.csv);
}

// A file that is damaged within is left out, and named.
void write(const read::Traces& traces, const trace_export::Exported& of,
           trace_export::TableWriter& to, std::vector<const read::Process*>& chosen,
           std::vector<read::Skipped>& skipped) {
  Progress progress("exporting", traces.traces.size());
  trace_export::write_job(of, to);
  trace_export::LineTables lines(of, to);
  std::size_t done = 0;
  const auto is_chosen = [&](const read::Process& p) { return of.ranks.contains(&p); };
  for (const read::Trace& trace : traces.traces) {
    if (std::ranges::none_of(trace.processes, is_chosen)) continue;
    to.begin_part();
    try {
      for (const read::Process& p : trace.processes) {
        if (is_chosen(p)) trace_export::write_process(of, p, to);
      }
      lines.write(trace);
    } catch (const trace_export::CantWrite&) {
      throw;
    } catch (const read::BadInput& e) {
      to.take_back_part();
      skipped.push_back({std::string(e.what()) + "; left out", true});
      for (const read::Process& p : trace.processes) std::erase(chosen, &p);
    }
    progress(++done);
  }
  if (chosen.empty()) throw read::BadInput(skipped.back().reason);
}

}  // namespace

int export_tables(const Options& o) {
  trace_export::remove_unfinished_on_signals();
  const auto writer = writer_of(o);
  read::Traces traces = load(read::trace_files(o.paths));
  const job::Job job = one_job(traces, o.choice);
  std::vector<const read::Process*> chosen = processes_of(job, o.ranks);
  const TimeAxis axis(job, traces, o.clock);
  const steps::Found found = steps::find(job, traces, [](std::size_t) {});
  trace_export::Exported of{job, found, axis.base_ns(chosen), axis.sentence()};
  for (const read::Process* p : chosen) {
    const auto number = static_cast<std::int64_t>(of.ranks.size());
    of.ranks[p] = {number, axis.placement(*p, number, of.base_time_ns)};
  }
  write(traces, of, *writer, chosen, traces.skipped);
  writer->finish();
  say_findings(job, traces);
  if (!of.clocks.empty()) fmt::print(stderr, "tprof: note: {}\n", of.clocks);
  fmt::print(stderr, "{}: {}\n", text::printable((o.csv.empty() ? o.sqlite : o.csv).string()),
             report::how_many(chosen));
  return std::ranges::any_of(traces.skipped, &read::Skipped::unreadable) ? kFinding : kOk;
}

}  // namespace tprof::cli
