// The commands that print one report: summary, check, doctor and coverage.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/peak_option.h"
#include "cli/screen.h"
#include "diagnose/diagnose.h"
#include "doctor/examine.h"
#include "launch/environment.h"
#include "read/error.h"
#include "report/report.h"
#include "stats/epochs.h"
#include "text/print.h"

namespace tprof::cli {

namespace {

void keep_epoch(read::Traces& traces, const job::Job& job, std::int64_t epoch) {
  const std::set<const read::Process*> ours(job.processes.begin(), job.processes.end());
  for (read::Trace& trace : traces.traces) {
    for (read::Process& p : trace.processes) {
      if (ours.contains(&p)) stats::keep_epoch(p, epoch);
    }
  }
}

// A table that can't honour a filter is not shown as if there were none.
void require_table(const report::ByRow& by, const filter::Words& only) {
  using report::Follows;
  const auto is_fine = [&](const std::string& filter) {
    return filter == "ranks"   ? by.follows != Follows::nothing
           : filter == "steps" ? by.follows <= Follows::steps
                               : by.follows == Follows::calls;
  };
  for (const auto& [name, value] : only.given()) {
    if (is_fine(name)) continue;
    throw read::BadInput(
        fmt::format("--{}: not with --by {}, which is of the whole job", name, by.name));
  }
}

// The commands that tell more than the summary does.
std::vector<std::string> next_of(const Options& o, const read::Traces& traces,
                                 const stats::Summary& s) {
  const std::string which = quoted(o.paths) + typed(o.choice);
  if (stats::sum(s.buckets).calls == 0 && s.only.empty()) {
    return {"tprof doctor " + which + "  (why nothing was counted)"};
  }
  std::vector<std::string> next = {"tprof report " + which + "  (why, and who holds others back)"};
  const bool merged = traces.traces.size() == 1 && traces.traces[0].merged;
  next.push_back(merged ? "open " + quoted(o.paths) + " in https://ui.perfetto.dev"
                        : "tprof merge " + which + " -o trace.json.gz  (a timeline)");
  if (o.by == report::By::none && !o.verbose) {
    next.push_back("tprof summary " + which + " --verbose  (or --by step, layer, wait, …)");
  }
  return next;
}

}  // namespace

int summary(const Options& o) {
  const report::ByRow& by = report::row_of(o.by);
  const bool takes_steps = by.takes == report::Takes::steps;
  stats::SummaryOptions options = {.read_lines = o.lines,
                                   .op_times = o.lines || by.by == report::By::op,
                                   .top = static_cast<std::size_t>(o.top),
                                   .steps = o.lines || takes_steps,
                                   .peak = peak_of(o.peak)};
  if (!o.peak.empty() && by.by != report::By::wait) {
    throw read::BadInput("--peak: with --by wait only");
  }
  if (!o.hist.empty()) {
    options.histogram = stats::HistogramOptions{.name = o.hist};
    if (o.bins != 0) options.histogram->bins = static_cast<std::size_t>(o.bins);
  }
  if (o.bins != 0 && !options.histogram)
    throw read::BadInput("--bins: of --hist, which is not there");
  const filter::Filter only = filter::parsed(o.only);
  require_table(by, only.words);
  const bool other_than_counts =
      by.takes != report::Takes::ledgers || o.lines || options.top != 0 || options.histogram;
  const bool takes_lines = only.steps || !only.sizes.empty() || !only.phases.empty();
  if (o.epoch >= 0 && (other_than_counts || takes_lines)) {
    throw read::BadInput("--epoch: of the counts only, by size, comm or dtype");
  }
  read::Traces traces = load(o.paths, o.team);
  const job::Job job = job::one_job(traces, o.choice);
  if (o.epoch >= 0) keep_epoch(traces, job, o.epoch);
  if (!only.words.empty()) options.findings = findings_of(job, traces, only.words);
  const filter::Selection asked(lines_of(job, traces), only,
                                {.steps = options.steps || options.top != 0});
  options.asked = &asked;
  const stats::Summary s = stats::summarise(asked.lines(), options);
  if (o.json) {
    text::put(report::to_json(s, o.by, o.lines));
  } else {
    show(report::to_text(s, {.by = o.by,
                             .verbose = o.verbose,
                             .per_rank = o.per_rank,
                             .width = columns_of_terminal().value_or(o.verbose ? SIZE_MAX : 80),
                             .breaks = columns_of_terminal().has_value(),
                             .next = next_of(o, traces, s)}));
  }
  return s.complete ? kOk : kFinding;
}

int check(const Options& o) {
  const filter::Filter only = filter::parsed(o.only);
  const read::Traces traces = load(o.paths, o.team, read::Wanted::dumps);
  for (const read::Trace& trace : traces.traces) {
    const std::string& of = trace.processes.front().header.window_of;
    if (of.empty()) continue;
    throw read::BadInput(trace.source.file,
                         "the file of a window, which does not tell what ranks "
                         "have done before: give its rank file, " +
                             of);
  }
  const job::Job job = filter::with_ranks(job::one_job(traces, o.choice), only.words.ranks);
  const filter::Calls comms(only, job);
  const diagnose::Diagnosed diagnosed = diagnose::diagnose(
      lines_of(job, traces), {.whole_job = only.words.ranks.empty(),
                              .comms = only.comms.empty() ? nullptr : &comms,
                              .read_lines = !o.no_lines,
                              .stuck_after_ns = std::llround(o.stuck_after_s * 1e9)});
  show(o.json ? report::to_json(diagnosed, only.words) : report::to_text(diagnosed, only.words),
       o.json);
  return diagnose::healthy(diagnosed.findings) ? kOk : kFinding;
}

namespace {

// True for a folder, which can't be run, and for a trace, which is no program.
bool is_trace(const fs::path& path) {
  std::error_code error;
  const std::string name = path.filename().string();
  return fs::is_directory(path, error) || name.ends_with(".json") ||
         std::ranges::any_of(read::kPackedEndings, [&](std::string_view ending) {
           return name.ends_with(".json" + std::string(ending));
         });
}

doctor::Report look_at_traces(const Options& o) {
  const read::Traces traces = load(read::trace_files({o.words.begin(), o.words.end()}));
  return doctor::report_of_traces(job::one_job(traces, o.choice), traces);
}

doctor::Report look_around(const std::vector<std::string>& command) {
  if (!command.empty() && !doctor::find_program(command[0])) {
    throw read::BadInput(command[0] +
                         ": expected a folder of traces, or a program in PATH: neither is there");
  }
  const doctor::Library library = doctor::describe_library(launch::find_library());
  doctor::Report report{.about = command.empty() ? "machine" : "command"};
  if (!command.empty()) doctor::examine_command(command, library, report);
  doctor::examine_machine(library, report);
  diagnose::order_and_cap(report.findings);
  return report;
}

}  // namespace

int doctor(const Options& o) {
  const bool traces = !o.words.empty() && is_trace(o.words[0]);
  const doctor::Report report = traces ? look_at_traces(o) : look_around(o.words);
  show(o.json ? doctor::to_json(report) : doctor::to_text(report), o.json);
  return diagnose::healthy(report.findings) ? kOk : kFinding;
}

int coverage(const Options& o) {
  show(doctor::coverage(doctor::describe_library(launch::find_library()), o.json,
                        columns_of_terminal().value_or(SIZE_MAX)),
       o.json);
  return kOk;
}

}  // namespace tprof::cli
