#include "cli/input.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/progress.h"
#include "diagnose/diagnose.h"
#include "read/error.h"
#include "report/findings.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

read::Traces load(const std::vector<std::filesystem::path>& paths, const team::Shared& team,
                  read::Wanted wanted) {
  return load(read::trace_files(paths, team), team, wanted);
}

read::Traces load(const std::vector<read::TraceFile>& files, const team::Shared& team,
                  read::Wanted wanted) {
  Progress progress("reading", files.size());
  read::Traces traces = read::load_all(
      files, [&](std::size_t done) { progress(done); }, wanted, team);
  job::join_ids(traces.traces);
  return traces;
}

run::Lines lines_of(const job::Job& job, const read::Traces& traces) {
  const auto progress = std::make_shared<Progress>("reading lines", traces.traces.size());
  return {job, traces, [progress](std::size_t done) { (*progress)(done); }};
}

diagnose::Findings findings_of(const job::Job& job, const read::Traces& traces,
                               const filter::Words& only) {
  return diagnose::diagnose(
             filter::with_ranks(job, only.ranks), traces,
             {.asked = diagnose::kSummary, .whole_job = only.ranks.empty(), .read_lines = false})
      .findings;
}

std::filesystem::path newest_run() {
  const std::filesystem::path all = "tprof-traces";  // where `tprof run` and the library put them
  std::filesystem::path newest;
  std::filesystem::file_time_type begun{};
  const auto look_at = [&](const std::filesystem::path& folder) {
    const auto at = std::filesystem::last_write_time(folder);
    if (!newest.empty() && at <= begun) return;
    if (read::files_in(folder).empty()) return;
    newest = folder;
    begun = at;
  };
  if (std::error_code error; std::filesystem::is_directory(all, error)) {
    look_at(all);
    for (const auto& entry : std::filesystem::directory_iterator(all)) {
      if (entry.is_directory(error)) look_at(entry.path());
    }
  }
  if (newest.empty()) {
    throw read::BadInput("expected a PATH: there is no run in ./tprof-traces to take for it");
  }
  text::say("tprof: {}, the newest run here\n", text::printable(newest.string()));
  return newest;
}

bool say_if_none_yet(const std::filesystem::path& folder) {
  const auto is_trace = [](const read::TraceFile& file) {
    if (!read::why_no_file(file.path).empty()) return false;
    const read::Beginning begins = read::beginning_of(file.path);
    return begins.merged || begins.header.has_value();
  };
  if (std::ranges::any_of(read::files_in(folder), is_trace)) return false;
  text::say(
      "tprof: {0}: no rank files yet; waiting for a job that writes there "
      "(tprof run --out {0}, or TPROF_OUTPUT_DIR)\n",
      text::printable(folder.string()));
  return true;
}

void say_findings(const job::Job& job, const read::Traces& traces) {
  const auto said =
      diagnose::diagnose(job, traces, {.asked = diagnose::kWhole, .read_lines = false});
  for (const diagnose::Finding& f : said.findings) {
    text::say("{}", report::to_text(f, report::Detail::brief));
  }
}

void say_filter(const filter::Selection& asked) {
  if (asked.words().empty()) return;
  text::say("note: {}\n", text::printable(asked.words().sentence()));
  for (const std::string& note : asked.notes()) {
    text::say("note: {}\n", text::printable(note));
  }
}

std::string typed(const job::Choice& choice) {
  return (choice.run.empty() ? "" : " --run " + quoted({choice.run})) +
         (choice.attempt == 0 ? "" : fmt::format(" --attempt {}", choice.attempt));
}

std::string quoted(const std::vector<std::filesystem::path>& paths) {
  std::string all;
  for (const auto& path : paths) {
    all += (all.empty() ? "" : " ") + text::shell_word(path.string());
  }
  return all;
}

}  // namespace tprof::cli
