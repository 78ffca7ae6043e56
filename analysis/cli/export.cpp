#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "check/names.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "export/formats.h"
#include "export/placement.h"
#include "read/error.h"
#include "report/report.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

// Returns null for a format that has a file for each rank.
std::unique_ptr<trace_export::TableWriter> writer_of(const Options& o) {
  if ((o.kineto || o.inspector) != !o.output.empty()) {
    throw read::BadInput("-o DIR: with --kineto and --inspector, which need it");
  }
  if (!o.output.empty()) return nullptr;
  return !o.sqlite.empty() ? trace_export::sqlite_writer(o.sqlite)
         : !o.csv.empty()  ? trace_export::csv_writer(o.csv)
                           : trace_export::parquet_writer(o.parquet);
}

// Writes a file for each rank. A rank without any call that was timed on the device gets none.
void write_ranks(const Options& o, trace_export::Exported& of) {
  trace_export::NewOutput output(o.output, trace_export::NewOutput::Kind::folder);
  const trace_export::RankFormat format =
      o.kineto ? trace_export::kineto_traces(of) : trace_export::inspector_logs(of);
  std::map<std::optional<std::int64_t>, trace_export::RankFormat::Processes> ranks;
  for (const read::Process* p : of.processes) ranks[p->header.rank].push_back(p);
  const std::size_t without_rank = ranks[std::nullopt].size();
  ranks.erase(std::nullopt);
  of.processes.clear();
  std::vector<std::int64_t> untimed;
  Progress progress("exporting", ranks.size());
  std::size_t done = 0;
  for (const auto& [rank, processes] : ranks) {
    const std::string name = format.file_name(processes);
    trace_export::Output file(output.part() / name, name.ends_with(".gz"));
    if (format.write(processes, file) == 0) {
      untimed.push_back(*rank);
    } else {
      file.close();
      of.processes.insert(of.processes.end(), processes.begin(), processes.end());
    }
    progress(++done);
  }
  if (of.processes.empty()) {
    throw read::BadInput(
        fmt::format("no {} has a time on the device (TPROF_TIMING=events), so {} would have "
                    "nothing to compute from",
                    o.kineto ? "call" : "collective that stands alone",
                    o.kineto ? "HTA and TensorBoard" : "the Inspector's tools"));
  }
  output.publish();
  if (!untimed.empty()) {
    text::say("note: {} without a file: no call has a time on the device\n",
              check::names_of(text::Ranks(untimed)));
  }
  if (without_rank != 0) {
    text::say("note: {} left out: of no known rank\n", check::counted(without_rank, "process"));
  }
  if (o.kineto) {
    text::say(
        "note: computation has no events here: what lies between calls and copies is "
        "not idle time, whatever a tool calls it\n");
  }
}

}  // namespace

int export_traces(const Options& o) {
  trace_export::remove_unfinished_on_signals();
  const auto writer = writer_of(o);
  Input in(o);
  const trace_export::TimeAxis axis(in.lines, clock_of(o));
  const filter::Selection asked(in.lines, in.only, {.counts = writer != nullptr, .steps = true});
  const run::Lines chosen = asked.lines();
  std::vector<const read::Process*> processes = asked.job().processes;
  trace_export::leave_out_unreadable(chosen, processes, in.traces.skipped);
  const steps::Found found = asked.found() ? *asked.found() : steps::find(in.lines);
  trace_export::Exported of{.job = in.job,
                            .lines = chosen,
                            .found = found,
                            .processes = processes,
                            .base_time_ns = axis.base_ns(processes),
                            .clocks = axis.sentence(),
                            .asked = in.only.words.empty() ? nullptr : &asked};
  for (const read::Process* p : processes) {
    const auto number = static_cast<std::int64_t>(of.ranks.size());
    of.ranks[p] = {number, axis.placement(*p, number, of.base_time_ns)};
  }
  if (writer) {
    Progress progress("exporting", processes.size());
    trace_export::write_tables(of, *writer, [&](std::size_t done) { progress(done); });
  } else {
    write_ranks(o, of);
  }
  const int code = say_findings(in.job, in.traces);
  say_filter(asked);
  if (!of.clocks.empty()) text::say("note: {}\n", of.clocks);
  const fs::path* named[] = {&o.output, &o.sqlite, &o.csv, &o.parquet};
  const fs::path& to = **std::ranges::find_if(named, [](const fs::path* p) { return !p->empty(); });
  text::say("{}: {}\n", text::printable(to.string()), report::how_many(of.processes));
  return code;
}

}  // namespace tprof::cli
