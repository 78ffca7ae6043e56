#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/input.h"
#include "diagnose/problems.h"
#include "doctor/command.h"
#include "doctor/machine.h"
#include "doctor/program.h"
#include "doctor/trace.h"
#include "read/error.h"

namespace tprof::cli {
namespace fs = std::filesystem;

namespace {

constexpr const char* kExamples = R"(
Examples:
  tprof doctor                                  this machine and environment
  tprof doctor -- torchrun train.py             what would be traced; runs nothing of it
  tprof doctor tprof-traces/train-20260101-120000-0      what was traced, and what was not
Exit code: 0 all well, 1 a warning or an error, 2 wrong usage or unreadable input.)";

struct Options {
  std::vector<std::string> words;
  std::string run;
  bool json = false;
};

// A folder can't be run, and a trace is no program.
bool is_trace(const fs::path& path) {
  std::error_code error;
  const std::string name = path.filename().string();
  return fs::is_directory(path, error) || name.ends_with(".json") || name.ends_with(".json.gz");
}

doctor::Report traced(const Options& o) {
  const read::Traces traces = load(read::trace_files({o.words.begin(), o.words.end()}));
  return doctor::of_trace(one_job(traces, o.run));
}

doctor::Report here(const Options& o) {
  if (!o.words.empty() && !doctor::find_program(o.words[0])) {
    throw read::BadInput(o.words[0] +
                         ": expected a folder of traces, or a program in PATH: neither is there");
  }
  const doctor::Library library = doctor::describe_library(find_library());
  doctor::Report report{.about = o.words.empty() ? "machine" : "command"};
  if (!o.words.empty()) doctor::examine_command(o.words, library, report);
  doctor::examine_machine(library, report);
  diagnose::sort_by_severity(report.findings);
  return report;
}

int examine(const Options& o) {
  const doctor::Report report = !o.words.empty() && is_trace(o.words[0]) ? traced(o) : here(o);
  fmt::print("{}", o.json ? doctor::to_json(report) : doctor::to_text(report));
  return report.healthy() ? kOk : kFinding;
}

}  // namespace

Run add_doctor(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("doctor", "What would be or was traced, and what goes past");
  command->footer(kExamples);
  command->positionals_at_end();
  command->add_option("PATH|CMD", o->words,
                      "folder of rank files, or a command behind --; neither: this machine");
  command->add_flag("--json", o->json, "for programs (schema tprof-doctor/1)");
  command->add_option("--run", o->run, "which run, where the files are of several")
      ->option_text("ID");
  return [o, command] { return command->parsed() ? examine(*o) : -1; };
}

}  // namespace tprof::cli
