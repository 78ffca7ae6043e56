#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "check/diagnose.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "doctor/examine.h"
#include "interpose/format/settings.h"
#include "launch/beside.h"
#include "launch/environment.h"
#include "launch/files_of_run.h"
#include "launch/torch_profiler.h"
#include "live/shell.h"
#include "page/page.h"
#include "read/error.h"
#include "report/report.h"
#include "report/verdict.h"
#include "report/words.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

doctor::Settings settings(const Options& o, const fs::path& library, const fs::path& folder,
                          const std::string& run_id) {
  const std::string pattern =  // of this single folder
      text::replaced(fs::absolute(folder).string(), {{"%", "%%"}});
  doctor::Settings all = {{"LD_PRELOAD", doctor::preload_list(library)},
                          {"TPROF_OUTPUT_DIR", pattern},
                          {"TPROF_RUN_ID", run_id}};
  // Never replaces a user's tool: NVTX supports only one.
  if (launch::process_env("NVTX_INJECTION64_PATH").empty()) {
    all.emplace_back("NVTX_INJECTION64_PATH", library.string());
  }
  const auto set = [&](Setting setting, std::string_view option, const std::string& value) {
    if (value.empty()) return;
    const SettingInfo& about = info(setting);
    if (!about.accepts(value)) {
      throw read::BadInput(fmt::format("{}: expected {}; found {}", option, about.values, value));
    }
    all.emplace_back(about.name, value);
  };
  set(Setting::events, "--events", o.events);
  set(Setting::quota, "--quota", o.quota);
  set(Setting::ranks, "--ranks", o.ranks);
  return all;
}

// Makes the folder for the traces. `asked`: the user's choice, or empty.
fs::path made_folder(const fs::path& asked, const Options& o, const launch::Launch& launch) {
  const fs::path traces = "tprof-traces";
  try {
    if (asked.empty()) return launch::make_run_folder(traces, o.words, launch);
    fs::create_directories(asked);
    return asked;
  } catch (const fs::filesystem_error& e) {
    throw read::BadInput(
        asked.empty() ? fs::absolute(traces) : asked,
        fmt::format(
            "no folder for the traces can be made there ({}): give another one with --out DIR",
            e.code().message()));
  }
}

// Verdict and page need all lines: with more than this they are left to tprof report, so that a
// job's end need not wait.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;

// Writes the page of a job, and puts verdict and advice in front of the summary, which then omits
// what the lines tell better and how ranks ended.
void report_on(const job::Job& job, const read::Traces& traces, const fs::path& folder,
               tables::Summary& s, report::TextOptions& options) {
  page::Gathered g;
  page::gather(run::Lines(job, traces), g);
  const fs::path page = folder / "report.html";
  options.verdict = page::verdict(g);
  try {
    write_page(page::to_html(g), page);
    options.next = {"open " + typed({page}) + "  (why)"};
  } catch (const read::BadInput& e) {
    text::say("tprof: {}\n", e.what());
    options.next = {"tprof report " + typed({folder}) + " -o FILE.html  (why)"};
  }
  const auto differ = [](const check::Finding& f) { return f.kind == check::Kind::mismatch; };
  if (std::ranges::any_of(g.said.findings, differ)) std::erase_if(s.findings, differ);
  if (std::ranges::any_of(g.said.findings, report::notes_the_end)) {
    std::erase_if(s.findings, report::notes_the_end);
  }
}

// Returns why an attempt ended before the next one: the first finding of `tprof check`.
std::string why_it_ended(const job::Job& job, const read::Traces& traces, bool read_lines,
                         const std::string& which) {
  const auto said = check::diagnose(job, traces, {.read_lines = read_lines});
  const std::string why = said.findings.empty() ? "its ranks did nothing wrong"
                                                : report::sentence(said.findings.front().text);
  return fmt::format("attempt {}: {}\n  (tprof check {} --attempt {})\n", job.attempt,
                     text::printable(why), which, job.attempt);
}

// Only one of many parallel tasks calls this.
void say_what_was_seen(const fs::path& folder, const std::string& run_id, bool failed) {
  const launch::FilesOfRun files = launch::files_of_run(folder, run_id);
  if (files.ours.empty()) {
    text::say(
        "tprof: no NCCL or CUDA call was seen, so nothing was written; tprof doctor -- CMD tells "
        "what would be traced\n");
    return;
  }
  const read::Traces traces = load(files.ours);
  std::vector<job::Job> jobs = job::jobs_of(job::processes_of(traces));
  std::uintmax_t bytes = 0;
  for (const read::TraceFile& file : files.ours) bytes += fs::file_size(file.path);
  const bool is_short = bytes <= kMostBytes;
  for (job::Job& job : jobs) {
    const bool last = &job == &jobs.back();
    const std::string run = !last && !job.restarted ? job.label : files.other_runs ? run_id : "";
    const std::string which = typed({folder}, {run, 0});
    if (job.restarted) {
      text::say("\n{}", why_it_ended(job, traces, is_short, which));
      continue;
    }
    if (files.others) {
      job.part = true;
      job.missing.clear();
    }
    tables::Summary s = tables::summarise(run::Lines(job, traces), {});
    report::TextOptions options = {.width = 80};
    if (files.others) {
      options.next = {"tprof report " + which + "  (all hosts)"};
    } else if (last && is_short) {
      report_on(job, traces, folder, s, options);
    } else {
      options.next = {"tprof report " + which + "  (why, and who holds others back)"};
    }
    if (failed) options.next.push_back("tprof check " + which + "  (how its ranks ended)");
    options.next.push_back("tprof merge " + which + " -o trace.json.gz  (a timeline)");
    text::say("\n{}", report::to_text(s, options));
  }
}

// Writes a timeline of this host's ranks with PyTorch's profiles of them. Each of many parallel
// tasks writes one of its own ranks.
void merge_with_torch(launch::TorchProfiler& torch, const fs::path& folder,
                      const std::string& run_id, bool one_of_many) {
  const launch::FilesOfRun files = launch::files_of_run(folder, run_id);
  const std::vector<launch::TorchTrace> traces = torch.collect(files.ours);
  if (traces.empty()) return;
  Options o;
  for (const launch::TorchTrace& t : traces) o.with.push_back(t.trace.string());
  if (one_of_many) {
    for (const launch::TorchTrace& t : traces) o.paths.push_back(t.rank_file);
  } else {
    for (const read::TraceFile& file : files.ours) o.paths.push_back(file.path);
  }
  const std::string name = one_of_many ? "merged-" + traces[0].trace.stem().string() : "merged";
  o.output = launch::free_name(traces[0].trace.parent_path(), name, ".json.gz");
  merge(o);
}

// Runs work after the command has ended. A failure must not change our exit status, which is the
// command's.
template <typename F>
void try_to(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    text::say("tprof: {}\n", text::printable(e.what()));
  }
}

}  // namespace

int run(const Options& o) {
  if (!o.torch_steps.empty()) launch::torch_steps(o.torch_steps);
  const launch::Launch launch = launch::launch_of(launch::process_env);
  const std::string run_id = !o.run_id.empty()        ? o.run_id
                             : !launch.run_id.empty() ? launch.run_id
                                                      : launch::random_id();
  const fs::path library = launch::find_library();  // before anything is created
  const std::string asked =
      o.output.empty() ? launch::process_env("TPROF_OUTPUT_DIR") : o.output.string();
  const fs::path folder = made_folder(launch::folder_of(asked, launch::process_env), o, launch);
  launch::UserProcesses user_processes(
      {o.handlers, seconds(o.handler_wait_s), o.on_window, o.keep_windows, o.quiet}, folder, run_id,
      launch);
  std::optional<launch::TorchProfiler> torch;
  doctor::Settings all = settings(o, library, folder, run_id);
  if (o.with_torch_profiler) {
    torch.emplace(o.torch_steps, folder);
    all.insert(all.end(), torch->settings().begin(), torch->settings().end());
  }
  // Processes forked later inherit its socket, so they must end when we do.
  launch::NodeLanes lanes(library, folder, run_id, all);
  if (lanes.with_gpus()) all.emplace_back("TPROF_METRICS", lanes.of_processes());
  const int status = [&] {
    const auto watch = launch::watch_for_stuck(o.command, seconds(o.stuck_after_s), folder, run_id);
    return launch::run_child(o.words, all);
  }();
  launch::let_writes_fail();
  const bool wrote_lanes = lanes.end();
  try_to([&] { launch::finish_the_dead(folder, run_id); });
  try_to([&] { user_processes.end(); });
  if (torch) try_to([&] { merge_with_torch(*torch, folder, run_id, launch.task.has_value()); });
  torch.reset();
  const bool speak = !o.quiet && launch.task.value_or(0) == 0;
  if (speak && status != 0) {
    text::say("tprof: the command {}\n", live::how_it_ended(status));
  }
  if (speak) try_to([&] { say_what_was_seen(folder, run_id, status != 0); });
  if (wrote_lanes && !launch.task) try_to([&] { launch::drop_lanes_of_no_rank(folder, run_id); });
  if (asked.empty()) {
    std::error_code not_empty;
    if (fs::remove(folder, not_empty)) fs::remove(folder.parent_path(), not_empty);
  }
  launch::exit_like(status);
}

}  // namespace tprof::cli
