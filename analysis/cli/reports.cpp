// The commands that print one report: summary, check, doctor, coverage, replay, diff, report,
// budget and recover.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <map>
#include <set>

#include "budget/budget.h"
#include "check/diagnose.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/screen.h"
#include "doctor/examine.h"
#include "export/output.h"
#include "launch/environment.h"
#include "page/page.h"
#include "read/error.h"
#include "read/folder.h"
#include "recover/recover.h"
#include "replay/replay.h"
#include "report/report.h"
#include "tables/totals.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

void keep_epoch(read::Traces& traces, const job::Job& job, std::int64_t epoch) {
  const std::set<const read::Process*> ours(job.processes.begin(), job.processes.end());
  for (read::Trace& trace : traces.traces) {
    for (read::Process& p : trace.processes) {
      if (ours.contains(&p)) tables::keep_epoch(p, epoch);
    }
  }
}

// Refuses a filter that the table can't honour.
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

// Returns commands that tell more than the summary.
std::vector<std::string> next_of(const Options& o, const read::Traces& traces,
                                 const tables::Summary& s) {
  const std::string which = typed(o.paths, o.choice);
  if (tables::sum(s.buckets).calls == 0 && s.only.empty()) {
    return {"tprof doctor " + which + "  (why nothing was counted)"};
  }
  std::vector<std::string> next = {"tprof report " + which + "  (why, and who holds others back)"};
  const bool merged = traces.traces.size() == 1 && traces.traces[0].merged;
  next.push_back(merged ? "open " + typed(o.paths) + " in https://ui.perfetto.dev"
                        : "tprof merge " + which + " -o trace.json.gz  (a timeline)");
  if (o.by.empty() && !o.verbose) {
    next.push_back("tprof summary " + which + " --verbose  (or --by step, layer, wait, …)");
  }
  return next;
}

// True for a folder and for a trace, neither of which is a program.
bool is_trace(const fs::path& path) {
  std::error_code error;
  const std::string name = path.filename().string();
  return fs::is_directory(path, error) || name.ends_with(".json") ||
         std::ranges::any_of(read::kPackedEndings, [&](std::string_view ending) {
           return name.ends_with(".json" + std::string(ending));
         });
}

doctor::Report look_around(const std::vector<std::string>& command) {
  if (!command.empty() && !doctor::find_program(command[0])) {
    throw read::BadInput(command[0] +
                         ": expected a folder of traces, or a program in PATH; found neither");
  }
  const doctor::Library library = doctor::describe_library(launch::find_library());
  doctor::Report report{.about = command.empty() ? "machine" : "command"};
  if (!command.empty()) doctor::examine_command(command, library, report);
  doctor::examine_machine(library, report);
  check::order_and_cap(report.findings);
  return report;
}

using budget::Way;

std::string dtype_of(const std::string& name) {
  static const std::map<std::string, std::string> kShort = {
      {"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp32", "float32"}, {"fp64", "float64"}};
  const auto known = kShort.find(name);
  const std::string& dtype = known == kShort.end() ? name : known->second;
  if (budget::size_of(dtype) != 0) return dtype;
  throw read::BadInput(
      fmt::format("--dtype: expected a type such as bf16 or float32, found '{}'", name));
}

void need(double value, const char* option, std::string_view way) {
  if (value > 0) return;
  throw read::BadInput(fmt::format("{}: --model {} needs it, above 0", option, way));
}

budget::Model model_of(const Options& o) {
  budget::Model m = o.model;
  m.dtype_given = !m.dtype.empty();
  m.reduce_given = !m.reduce_dtype.empty();
  m.dtype = dtype_of(m.dtype_given ? m.dtype : "bf16");
  m.reduce_dtype = m.reduce_given ? dtype_of(m.reduce_dtype) : m.dtype;
  m.micro_batches = std::max(o.micro_batches, 1.0);
  m.tolerance /= 100;
  if (o.accumulate == "every") m.accumulate = budget::Accumulate::every;
  if (o.accumulate == "no_sync") m.accumulate = budget::Accumulate::last;
  for (const std::string_view name : text::split(o.ways, '+')) {
    const auto* row = std::ranges::find(budget::kWays, name, &budget::WayRow::name);
    if (row == std::end(budget::kWays)) {
      throw read::BadInput(
          fmt::format("--model: expected ddp, zero1, zero2, zero3, fsdp, hsdp or tp, or two such "
                      "as fsdp+tp; found '{}'",
                      name));
    }
    m.ways.push_back(row->way);
    if (row->way != Way::tp) {
      need(m.params, "--params", name);
      continue;
    }
    need(m.layers, "--layers", name);
    need(m.tokens, "--tokens", name);
    need(m.hidden, "--hidden", name);
  }
  if (m.root_params > m.params) throw read::BadInput("--root-params: more than --params");
  return m;
}

// A problem with one file does not keep others from being recovered.
int recover_one(const fs::path& file, bool force) {
  try {
    if (const std::string why = read::why_no_file(file); !why.empty()) {
      throw read::BadInput(file, why);
    }
    const recover::Result result = recover::recover(file, force);
    text::print("{}\n", text::printable(file.string() + ": " + result.text));
    return result.closed ? kOk : kFinding;
  } catch (const read::BadInput& e) {
    text::say("tprof: {}\n", text::printable(e.what()));
    return kBadUsage;
  }
}

}  // namespace

int summary(const Options& o) {
  const auto named = std::ranges::find(report::by_rows(), o.by, &report::ByRow::name);
  const report::ByRow& by = o.by.empty() ? report::row_of(report::By::none) : *named;
  const bool takes_steps = by.takes == report::Takes::steps;
  tables::SummaryOptions options = {.read_lines = o.lines,
                                    .op_times = o.lines || by.by == report::By::op,
                                    .top = static_cast<std::size_t>(o.top),
                                    .steps = o.lines || takes_steps,
                                    .peak = peak_of(o.peak)};
  if (!o.peak.empty() && by.by != report::By::wait) {
    throw read::BadInput("--peak: with --by wait only");
  }
  if (!o.hist.empty()) {
    options.histogram = tables::HistogramOptions{.name = o.hist};
    if (o.bins != 0) options.histogram->bins = static_cast<std::size_t>(o.bins);
  }
  require_table(by, o.only);
  const std::pair<bool, const char*> of_lines[] = {{by.takes != report::Takes::ledgers, by.name},
                                                   {o.lines, "--lines"},
                                                   {options.top != 0, "--top"},
                                                   {!o.hist.empty(), "--hist"},
                                                   {!o.only.steps.empty(), "--steps"},
                                                   {!o.only.sizes.empty(), "--sizes"},
                                                   {!o.only.phases.empty(), "--phase"}};
  for (const auto& [given, name] : of_lines) {
    if (o.epoch < 0 || !given) continue;
    throw read::BadInput(fmt::format("--epoch works with --by size, comm or dtype, not {}", name));
  }
  Input in(o);
  if (o.epoch >= 0) keep_epoch(in.traces, in.job, o.epoch);
  if (!in.only.words.empty()) options.findings = findings_of(in);
  const filter::Selection asked(in.lines, in.only, {.steps = options.steps || options.top != 0});
  options.asked = &asked;
  const tables::Summary s = tables::summarise(asked.lines(), options);
  const report::By asked_by = o.by.empty() ? report::By::none : by.by;
  if (o.json) {
    text::put(report::to_json(s, asked_by, o.lines));
  } else {
    show(report::to_text(s, {.by = asked_by,
                             .verbose = o.verbose,
                             .per_rank = o.per_rank,
                             .width = width_of_tables(o.verbose ? SIZE_MAX : 80),
                             .breaks = columns_of_terminal().has_value(),
                             .next = next_of(o, in.traces, s)}));
  }
  return s.complete ? kOk : kFinding;
}

int check(const Options& o) {
  const Input in(o, read::trace_files(o.paths), read::Wanted::dumps);
  for (const read::Trace& trace : in.traces.traces) {
    const std::string& of = trace.processes.front().header.window_of;
    if (of.empty()) continue;
    throw read::BadInput(
        trace.source.file,
        "a window's file, which lacks what ranks have done before: give its rank file, " + of);
  }
  const filter::Words& only = in.only.words;
  const job::Job job = filter::with_ranks(in.job, only.ranks);
  const filter::Calls comms(in.only, job);
  const check::Diagnosed diagnosed = check::diagnose(
      lines_of(job, in.traces), {.comms = in.only.comms.empty() ? nullptr : &comms,
                                 .read_lines = !o.no_lines,
                                 .stuck_after_ns = seconds(o.stuck_after_s).count()});
  show(o.json ? report::to_json(diagnosed, only) : report::to_text(diagnosed, only), o.json);
  return check::healthy(diagnosed.findings) ? kOk : kFinding;
}

int doctor(const Options& o) {
  const auto of_traces = [&] {
    const Input in(o, read::trace_files({o.words.begin(), o.words.end()}));
    return doctor::report_of_traces(in.job, in.traces);
  };
  const bool traces = !o.words.empty() && is_trace(o.words[0]);
  const doctor::Report report = traces ? of_traces() : look_around(o.words);
  show(o.json ? doctor::to_json(report) : doctor::to_text(report), o.json);
  return check::healthy(report.findings) ? kOk : kFinding;
}

int coverage(const Options& o) {
  const doctor::Library library = doctor::describe_library(launch::find_library());
  show(doctor::coverage(library, o.json, width_of_tables()), o.json);
  return kOk;
}

int replay(const Options& o) {
  Input in(o);
  const filter::Selection asked(in.lines, in.only, {});
  replay::Plan plan = replay::plan(asked.lines());
  plan.only = asked.words();
  plan.notes = asked.notes();
  const replay::Launch launch{.mpi = o.mpi};
  show(o.json ? replay::to_json(asked.job(), plan, launch)
              : replay::to_text(asked.job(), plan, launch, width_of_tables()),
       o.json);
  in.traces.skipped.insert(in.traces.skipped.end(), plan.unreadable.begin(), plan.unreadable.end());
  return say_findings(in.job, in.traces);
}

int diff_runs(const Options& o) {
  std::vector<diff::Rule> rules;
  for (const std::string& list : o.fail_on) {
    for (const diff::Rule& rule : diff::rules_of(list)) rules.push_back(rule);
  }
  if (o.no_lines && !(o.only.steps + o.only.sizes + o.only.phases).empty()) {
    throw read::BadInput("--no-lines: not with --steps, --sizes and --phase, which need lines");
  }
  const Input in_a(o, read::trace_files({o.run_a}));
  const Input in_b(o, read::trace_files({o.run_b}));
  const filter::Filter& only = in_a.only;
  const filter::Needs needs{.steps = !o.no_lines, .any = false};
  const check::Findings findings_a = findings_of(in_a);
  const check::Findings findings_b = findings_of(in_b);
  const filter::Selection asked_a(in_a.lines, only, needs);
  const filter::Selection asked_b(in_b.lines, only, needs);
  const diff::Run a = diff::look_at(asked_a, findings_a, o.run_a, !o.no_lines);
  const diff::Run b = diff::look_at(asked_b, findings_b, o.run_b, !o.no_lines);
  const diff::Diff found = diff::compare(a, b);
  const diff::Judgement judgement = diff::judge(rules, found);
  show(o.json ? report::to_json(a, b, found, judgement)
              : report::to_text(a, b, found, judgement, width_of_tables()),
       o.json);
  if (!judgement.failed.empty()) return kFinding;
  if (judgement.unknown.empty()) return kOk;
  throw read::BadInput(fmt::format("--fail-on: nothing is known about {}: {}",
                                   fmt::join(judgement.unknown, ", "),
                                   fmt::join(judgement.why, "; ")));
}

void write_page(const std::string& page, const fs::path& to) {
  if (to == "-") {
    text::put(page);
    return;
  }
  trace_export::Output out(to, false, [](const fs::path& there) {
    if (begins_with(there, "<!doctype html><!-- tprof report -->")) return;
    throw read::BadInput(there, "exists and is no page of tprof report: give another name");
  });
  out.put(page);
  out.close();
}

int report_of(const Options& o) {
  if (o.json && !o.output.empty()) {
    throw read::BadInput("expected one of --json and -o FILE.html");
  }
  page::Gathered g;
  g.why.peak = peak_of(o.peak);
  g.why.room = why::Room(static_cast<std::uint64_t>(o.memory_mib) << 20);
  trace_export::remove_unfinished_on_signals();
  const Input in(o);
  filter::with_ranks(in.job, in.only.words.ranks);  // throws if none of these is there
  page::gather(in.lines, g);
  const filter::Selection asked(in.lines, in.only, {});
  if (!in.only.words.empty()) page::gather_calls(asked, g);
  if (o.json) {
    text::put(page::to_json(g));
  } else if (o.output.empty()) {
    show(page::to_text(g, "tprof report " + typed(o.paths, o.choice) + " -o report.html"));
  } else {
    const std::string page = page::to_html(g);
    write_page(page, o.output);
    if (o.output != "-") {
      text::say("{}: {}; open it in a browser\n", text::printable(o.output.string()),
                text::bytes(page.size()));
    }
  }
  return check::healthy(g.said.findings) ? kOk : kFinding;
}

int budget(const Options& o) {
  std::optional<budget::Model> model;
  if (!o.ways.empty()) model = model_of(o);
  budget::Budget budget;
  if (!o.budget_file.empty()) budget = budget::read_file(o.budget_file);

  Input in(o);
  const job::Job job = filter::with_ranks(in.job, in.only.words.ranks);
  const run::Lines lines = lines_of(job, in.traces);
  const auto measured_as = [&](std::uint64_t micro_batches) {
    return budget::measure(
        lines, {.steps = static_cast<std::uint64_t>(o.steps),
                .micro_batches = micro_batches,
                .each_is_step = o.micro_batches == 1,
                .copies = o.model.offload || !o.write.empty() || budget::has_copies(budget)});
  };
  const auto micro_batches = static_cast<std::uint64_t>(std::max(o.micro_batches, 1.0));
  if (!o.write.empty()) {
    budget::write_file(budget::of_run(measured_as(micro_batches), o.model.tolerance / 100),
                       o.write);
    return kOk;
  }
  budget::Reading found = model ? budget::against(*model, measured_as)
                                : budget::against(budget, micro_batches, measured_as);
  const budget::Measured& measured = found.measured;
  budget::Compared& compared = found.compared;
  compared.only = in.only.words;
  show(o.json ? budget::to_json(job, measured, compared)
              : budget::to_text(measured, compared, width_of_tables()),
       o.json);
  in.traces.skipped.insert(in.traces.skipped.end(), measured.unreadable.begin(),
                           measured.unreadable.end());
  return std::max(say_findings(job, in.traces), compared.within ? +kOk : +kFinding);
}

int recover(const Options& o) {
  int worst = kOk;
  for (const fs::path& path : o.paths) {
    for (const std::string& line : recover::free_useless(path)) {
      text::print("{}\n", text::printable(line));
    }
  }
  for (const read::TraceFile& file : read::trace_files(o.paths)) {
    if (!file.named && !read::why_no_file(file.path).empty()) continue;
    worst = std::max(worst, recover_one(file.path, o.force));
  }
  return worst;
}

}  // namespace tprof::cli
