#include "cli/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "cli/progress.h"
#include "diagnose/diagnose.h"
#include "interpose/format/settings.h"
#include "read/error.h"
#include "report/words.h"
#include "text/text.h"

namespace tprof::cli {

read::Traces load(const std::vector<std::filesystem::path>& paths, const team::Shared& team) {
  return load(read::trace_files(paths, team), team);
}

read::Traces load(const std::vector<read::TraceFile>& files, const team::Shared& team) {
  Progress progress("reading", files.size());
  read::Traces traces = read::load_all(
      files, [&](std::size_t done) { progress(done); }, read::Wanted::lines, team);
  job::join_ids(traces.traces);
  return traces;
}

bool is_listed(std::string_view ranks, std::int64_t rank) {
  bool found = false;
  const bool is_list = each_range(ranks, [&](std::int64_t first, std::int64_t last) {
    found = found || (first <= rank && rank <= last);
  });
  if (is_list) return found;
  throw std::invalid_argument(fmt::format("expected ranks such as 0-3,7, found '{}'", ranks));
}

std::vector<const read::Process*> processes_of(const job::Job& job, const std::string& ranks) {
  std::vector<const read::Process*> chosen = job.processes;
  if (ranks.empty()) return chosen;
  std::erase_if(chosen, [&](const read::Process* p) {
    return !p->header.rank || !is_listed(ranks, *p->header.rank);
  });
  if (chosen.empty()) throw read::BadInput(fmt::format("none of the ranks {} is here", ranks));
  return chosen;
}

void say_findings(const job::Job& job, const read::Traces& traces) {
  const auto said =
      diagnose::diagnose(job, traces, {.asked = diagnose::kSummary, .read_lines = false});
  for (const diagnose::Finding& f : said.findings) {
    fmt::print(stderr, "tprof: {}: {}\n", f.severity_name(),
               text::printable(report::sentence(f.text)));
  }
}

stats::StepRange steps_of(std::string_view text) {
  stats::StepRange range;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, range.first);
  if (error == std::errc() && range.first >= 0) {
    if (rest == end) return {range.first, range.first};
    if (*rest == '-' && rest + 1 == end) return range;
    const auto last = std::from_chars(rest + 1, end, range.last);
    const bool whole = last.ec == std::errc() && last.ptr == end;
    if (*rest == '-' && whole && range.first <= range.last) return range;
  }
  throw read::BadInput(fmt::format("--steps: expected 10-, 3-7 or 5, found '{}'", text));
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
