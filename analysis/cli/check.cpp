#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "report/check.h"

namespace tprof::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tprof check tprof-traces/train-20260101-120000-0
  tprof check DIR --no-lines      # thousands of ranks: the ends of the files only
  tprof check DIR --json | jq '.findings[] | select(.severity == "error")'
Exit code: 0 healthy, 1 something to look at, 2 unreadable input.)";

struct Options {
  std::vector<std::filesystem::path> paths;
  std::string run;
  bool json = false;
  bool no_lines = false;
  double stuck_after_s = 30;
};

int check(const Options& o) {
  const read::Traces traces = load(read::trace_files(o.paths));
  const match::Job job = one_job(traces, o.run);
  const diagnose::Checked checked = [&] {
    Progress progress("checking", traces.traces.size());
    return diagnose::check(job, traces,
                           {.read_lines = !o.no_lines,
                            .stuck_after_ns = std::llround(o.stuck_after_s * 1e9),
                            .progress = [&](std::size_t done) { progress(done); }});
  }();
  fmt::print("{}", o.json ? report::to_json(checked) : report::to_text(checked));
  return checked.healthy() ? kOk : kFinding;
}

}  // namespace

Run add_check(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("check", "Did all ranks do the same, and which one held the job up");
  command->footer(kExamples);
  command->add_option("PATH", o->paths, "folder of rank files, rank files, or a merged trace")
      ->required();
  command->add_flag("--json", o->json, "for programs (schema tprof-check/1)");
  command->add_flag("--no-lines", o->no_lines,
                    "read ledgers only: faster, but names an interval instead of an operation");
  command
      ->add_option("--stuck-after", o->stuck_after_s,
                   "seconds after which a call of a process that still runs is stuck (default 30)")
      ->check(CLI::Range(0.0, 1e9))
      ->option_text("SECONDS");
  command->add_option("--run", o->run, "which run, where the files are of several")
      ->option_text("ID");
  return [o, command] { return command->parsed() ? check(*o) : -1; };
}

}  // namespace tprof::cli
