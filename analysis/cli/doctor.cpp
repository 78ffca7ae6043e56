#include <fmt/format.h>

#include <filesystem>

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

namespace {

// A folder can't be run, and a trace is no program.
bool is_trace(const fs::path& path) {
  std::error_code error;
  const std::string name = path.filename().string();
  return fs::is_directory(path, error) || name.ends_with(".json") || name.ends_with(".json.gz");
}

doctor::Report traced(const DoctorOptions& o) {
  const read::Traces traces = load(read::trace_files({o.words.begin(), o.words.end()}));
  return doctor::of_trace(one_job(traces, o.choice), traces.skipped);
}

doctor::Report here(const DoctorOptions& o) {
  if (!o.words.empty() && !doctor::find_program(o.words[0])) {
    throw read::BadInput(o.words[0] +
                         ": expected a folder of traces, or a program in PATH: neither is there");
  }
  const doctor::Library library = doctor::describe_library(find_library());
  doctor::Report report{.about = o.words.empty() ? "machine" : "command"};
  if (!o.words.empty()) doctor::examine_command(o.words, library, report);
  doctor::examine_machine(library, report);
  diagnose::tidy(report.findings);
  return report;
}

}  // namespace

int doctor(const DoctorOptions& o) {
  const doctor::Report report = !o.words.empty() && is_trace(o.words[0]) ? traced(o) : here(o);
  fmt::print("{}", o.json ? doctor::to_json(report) : doctor::to_text(report));
  return report.healthy() ? kOk : kFinding;
}

}  // namespace tprof::cli
