#include "cli/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "cli/progress.h"
#include "diagnose/diagnose.h"
#include "diagnose/names.h"
#include "interpose/format/settings.h"
#include "job/jobs.h"
#include "read/error.h"
#include "report/words.h"
#include "text/text.h"

namespace tprof::cli {

read::Traces load(const std::vector<read::TraceFile>& files) {
  Progress progress("reading", files.size());
  read::Traces traces = read::load_all(files, [&](std::size_t done) { progress(done); });
  job::join_ids(traces.traces);
  return traces;
}

std::vector<const read::Process*> processes_of(const read::Traces& traces) {
  std::vector<const read::Process*> processes;
  for (const read::Trace& trace : traces.traces) {
    for (const read::Process& p : trace.processes) processes.push_back(&p);
  }
  return processes;
}

namespace {

std::string describe(const job::Job& job) {
  return fmt::format("{} ({}, started {}, {})", text::printable(job.label),
                     job.ranks.empty() ? "no rank" : "ranks " + text::ranges(job.ranks),
                     diagnose::utc(job.processes.front()->header.start_ns),
                     text::printable(job.processes.front()->header.command));
}

// Describes the jobs other than `but`, as few of them as can be read.
std::string list(const std::vector<job::Job>& jobs, const job::Job* but = nullptr) {
  constexpr std::size_t kShown = 6;
  std::string all;
  std::size_t n = 0;
  for (const job::Job& job : jobs) {
    if (&job == but || ++n > kShown) continue;
    all += (all.empty() ? "" : "; ") + describe(job);
  }
  return n > kShown ? fmt::format("{}; and {} more", all, n - kShown) : all;
}

bool is_named(const job::Job& job, const std::string& name) {
  return job.label == name || (job.run_id.empty() ? job::kUnnamed : job.run_id) == name;
}

}  // namespace

job::Job one_job(const read::Traces& traces, const Choice& choice) {
  std::vector<job::Job> jobs = job::jobs_of(processes_of(traces));
  job::Job* chosen = nullptr;
  for (job::Job& job : jobs) {  // in the order of their start
    if (!choice.run.empty() && !is_named(job, choice.run)) continue;
    if (choice.attempt == 0 || job.attempt == choice.attempt) chosen = &job;
  }
  if (chosen == nullptr) {
    const std::string attempt =
        choice.attempt == 0 ? "" : fmt::format("attempt {} of ", choice.attempt);
    const std::string run = choice.run.empty() ? "any run" : "run '" + choice.run + "'";
    throw read::BadInput(fmt::format("no {}{} here, but: {}", attempt, run, list(jobs)));
  }
  if (jobs.size() > 1 && choice.run.empty() && choice.attempt == 0) {
    const bool attempts = std::ranges::all_of(
        jobs, [&](const job::Job& job) { return job.run_id == chosen->run_id; });
    chosen->beside = fmt::format("{} {} are here and this is the last to start, {}; not shown: {}",
                                 jobs.size(), attempts ? "attempts of one run" : "runs",
                                 text::printable(chosen->label), list(jobs, chosen));
  }
  return std::move(*chosen);
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

std::string typed(const Choice& choice) {
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
