#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "diagnose/names.h"
#include "export/formats.h"
#include "export/table_rows.h"
#include "export/time_axis.h"
#include "read/error.h"
#include "report/report.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

std::unique_ptr<trace_export::TableWriter> writer_of(const Options& o) {
  if (!o.sqlite.empty()) return trace_export::sqlite_writer(o.sqlite);
  if (!o.csv.empty()) return trace_export::csv_writer(o.csv);
  return trace_export::parquet_writer(o.parquet);
}

const fs::path& output_of(const Options& o) {
  for (const fs::path* name : {&o.sqlite, &o.csv, &o.parquet}) {
    if (!name->empty()) return *name;
  }
  return o.output;
}

void require_one_format(const Options& o) {
  const std::array formats = {!o.sqlite.empty(), !o.csv.empty(), !o.parquet.empty(), o.kineto,
                              o.inspector};
  if (std::ranges::count(formats, true) != 1) {
    throw read::BadInput(
        "expected one of --sqlite FILE, --csv DIR, --parquet DIR, --kineto -o DIR and --inspector "
        "-o DIR");
  }
  if ((o.kineto || o.inspector) != !o.output.empty()) {
    throw read::BadInput("-o DIR: with --kineto and --inspector, which need it");
  }
}

// Writes the tables. Leaves out files whose lines are damaged, and names them.
void write(const read::Traces& traces, const trace_export::Exported& of,
           trace_export::TableWriter& to, std::vector<const read::Process*>& chosen,
           std::vector<read::Skipped>& skipped) {
  Progress progress("exporting", traces.traces.size());
  trace_export::write_job(of, to);
  std::size_t done = 0;
  const auto is_chosen = [&](const read::Process& p) { return of.ranks.contains(&p); };
  for (const read::Trace& trace : traces.traces) {
    if (std::ranges::none_of(trace.processes, is_chosen)) continue;
    to.begin_part();
    try {
      for (const read::Process& p : trace.processes) {
        if (is_chosen(p)) trace_export::write_process(of, p, to);
      }
      trace_export::write_lines(of, trace, to);
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

// Writes a file for each rank. A rank without any call that was timed on the device gets none.
void write_ranks(const Options& o, const read::Traces& traces, const trace_export::Exported& of,
                 std::vector<const read::Process*>& chosen, std::vector<read::Skipped>& skipped) {
  trace_export::NewOutput output(o.output, trace_export::NewOutput::Kind::folder);
  const trace_export::MakeRankFormat make =
      o.kineto ? trace_export::kineto_traces(of) : trace_export::inspector_logs(of);
  const std::size_t skipped_before = skipped.size();
  Progress progress("exporting", traces.traces.size());
  const trace_export::RankFiles files = trace_export::write_ranks(
      of, traces, make, output, skipped, [&](std::size_t done) { progress(done); });
  if (files.written.empty()) {
    throw read::BadInput(
        skipped.size() > skipped_before
            ? skipped.back().reason
            : fmt::format("no {} has a time on the device (TPROF_TIMING=events), so {} would have "
                          "nothing to compute from",
                          o.kineto ? "call" : "collective that stands alone",
                          o.kineto ? "HTA and TensorBoard" : "the Inspector's tools"));
  }
  output.publish();
  std::erase_if(chosen, [&](const read::Process* p) {
    return !p->header.rank || !std::ranges::binary_search(files.written, *p->header.rank);
  });
  if (!files.untimed.empty()) {
    text::say("note: {} without a file: no call has a time on the device\n",
              diagnose::names_of(text::Ranks(files.untimed)));
  }
  if (files.without_rank != 0) {
    text::say("note: {} left out: of no known rank\n",
              diagnose::counted(files.without_rank, "process"));
  }
  if (o.kineto) {
    text::say(
        "note: computation has no events here: what lies between calls and copies is "
        "not idle time, whatever a tool calls it\n");
  }
}

}  // namespace

int export_traces(const Options& o) {
  require_one_format(o);
  const filter::Filter only = filter::parsed(o.only);
  trace_export::remove_unfinished_on_signals();
  const bool tables = !o.kineto && !o.inspector;
  const auto writer = tables ? writer_of(o) : nullptr;
  read::Traces traces = load(read::trace_files(o.paths));
  const job::Job job = job::one_job(traces, o.choice);
  const run::Lines lines = lines_of(job, traces);
  const trace_export::TimeAxis axis(lines, o.clock);
  const filter::Selection asked(lines, only, {.counts = tables, .steps = true});
  std::vector<const read::Process*> chosen = asked.job().processes;
  const steps::Found found = asked.found() ? *asked.found() : steps::find(lines);
  trace_export::Exported of{job, found, axis.base_ns(chosen), axis.sentence()};
  if (!only.words.empty()) of.asked = &asked;
  for (const read::Process* p : chosen) {
    const auto number = static_cast<std::int64_t>(of.ranks.size());
    of.ranks[p] = {number, axis.placement(*p, number, of.base_time_ns)};
  }
  if (tables) {
    write(traces, of, *writer, chosen, traces.skipped);
    writer->finish();
  } else {
    write_ranks(o, traces, of, chosen, traces.skipped);
  }
  say_findings(job, traces);
  say_filter(asked);
  if (!of.clocks.empty()) text::say("note: {}\n", of.clocks);
  text::say("{}: {}\n", text::printable(output_of(o).string()), report::how_many(chosen));
  return std::ranges::any_of(traces.skipped, &read::Skipped::unreadable) ? kFinding : kOk;
}

}  // namespace tprof::cli
