#include "cli/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "check/diagnose.h"
#include "cli/screen.h"
#include "read/error.h"
#include "report/findings.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

read::Traces load(const std::vector<read::TraceFile>& files, const team::Shared& team,
                  read::Wanted wanted) {
  Progress progress("reading", files.size());
  read::Traces traces = read::load_all(
      files, [&](std::size_t done) { progress(done); }, wanted, team);
  job::join_ids(traces.traces);
  return traces;
}

Input::Input(const Options& o, const std::vector<read::TraceFile>& files, read::Wanted wanted)
    : only(filter::parsed(o.only)),
      traces(load(files, o.team, wanted)),
      job(job::one_job(traces, o.choice)),
      lines(lines_of(job, traces)) {
  only.words.merged = job.only;
}

run::Lines lines_of(const job::Job& job, const read::Traces& traces) {
  const auto progress = std::make_shared<Progress>("reading lines", traces.traces.size());
  return {job, traces, [progress](std::size_t done) { (*progress)(done); }};
}

check::Findings findings_of(const Input& input) {
  return check::diagnose(filter::with_ranks(input.job, input.only.words.ranks), input.traces,
                         {.asked = check::kSummary, .read_lines = false})
      .findings;
}

fs::path newest_run() {
  const fs::path all = "tprof-traces";  // the default of `tprof run` and the library
  fs::path newest;
  fs::file_time_type begun{};
  const auto look_at = [&](const fs::path& folder) {
    const auto at = fs::last_write_time(folder);
    if (!newest.empty() && at <= begun) return;
    if (read::files_in(folder).empty()) return;
    newest = folder;
    begun = at;
  };
  if (std::error_code error; fs::is_directory(all, error)) {
    look_at(all);
    for (const auto& entry : fs::directory_iterator(all)) {
      if (entry.is_directory(error)) look_at(entry.path());
    }
  }
  if (newest.empty()) {
    throw read::BadInput("expected a PATH, as ./tprof-traces has no run");
  }
  text::say("tprof: {}, the newest run here\n", text::printable(newest.string()));
  return newest;
}

bool say_if_none_yet(const fs::path& folder) {
  const auto is_trace = [](const read::TraceFile& file) {
    if (!read::why_no_file(file.path).empty()) return false;
    const read::Beginning begins = read::beginning_of(file.path);
    return begins.merged || begins.header || !begins.refused.empty();
  };
  if (std::ranges::any_of(read::files_in(folder), is_trace)) return false;
  text::say(
      "tprof: {0}: no rank files yet; waiting for a job that writes there "
      "(tprof run --out {0}, or TPROF_OUTPUT_DIR)\n",
      text::printable(folder.string()));
  return true;
}

bool begins_with(const fs::path& file, std::string_view text) {
  std::string begin(text.size(), '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), std::ssize(begin));
  return begin == text;
}

int say_findings(const job::Job& job, const read::Traces& traces) {
  auto said = check::diagnose(job, traces, {.asked = check::kWhole, .read_lines = false});
  for (check::Finding& f : said.findings) {
    if (f.kind != check::Kind::unreadable) f.severity = check::Severity::note;
    text::say("{}", report::to_text(f, report::Detail::brief));
  }
  return check::healthy(said.findings) ? kOk : kFinding;
}

void say_filter(const filter::Selection& asked) {
  text::say("{}", report::only_text(asked.words(), asked.notes(), "note: "));
}

std::string typed(const std::vector<fs::path>& paths, const job::Choice& choice) {
  std::string all;
  for (const fs::path& path : paths) {
    all += (all.empty() ? "" : " ") + text::shell_word(path.string());
  }
  if (!choice.run.empty()) all += " --run " + text::shell_word(choice.run);
  return choice.attempt == 0 ? all : all + fmt::format(" --attempt {}", choice.attempt);
}

trace_export::Clock clock_of(const Options& o) {
  using enum trace_export::Clock;
  return o.clock == "realtime" ? realtime : collective;
}

why::Peak peak_of(const std::string& text) {
  why::Peak peak;
  if (text.empty()) return peak;
  for (const std::string_view part : text::split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view link = equals == std::string_view::npos ? "" : part.substr(0, equals);
    const double value = text::number<double>(part.substr(equals + 1)).value_or(0);
    if (!(value > 0 && value < 1e6) || (!link.empty() && link != "intra" && link != "inter")) {
      throw read::BadInput(
          fmt::format("--peak: expected GB/s as nccl-tests' busbw, such as 400 or "
                      "intra=450,inter=50; found {}",
                      text));
    }
    if (link != "inter") peak.intra = value;
    if (link != "intra") peak.inter = value;
  }
  return peak;
}

}  // namespace tprof::cli
