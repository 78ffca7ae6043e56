#include "job/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "read/error.h"
#include "text/text.h"

namespace tprof::job {

std::vector<const read::Process*> processes_of(const read::Traces& traces) {
  std::vector<const read::Process*> processes;
  for (const read::Trace& trace : traces.traces) {
    for (const read::Process& p : trace.processes) processes.push_back(&p);
  }
  return processes;
}

namespace {

std::string describe(const Job& job) {
  return fmt::format("{} ({}, started {}, {})", text::printable(job.label),
                     job.ranks.empty() ? "no rank" : "ranks " + text::ranges(job.ranks),
                     text::utc(job.processes.front()->header.start_ns),
                     text::printable(job.processes.front()->header.command));
}

// Describes the jobs other than `but`, as few of them as can be read.
std::string list(const std::vector<Job>& jobs, const Job* but = nullptr) {
  constexpr std::size_t kShown = 6;
  std::string all;
  std::size_t n = 0;
  for (const Job& job : jobs) {
    if (&job == but || ++n > kShown) continue;
    all += (all.empty() ? "" : "; ") + describe(job);
  }
  return n > kShown ? fmt::format("{}; and {} more", all, n - kShown) : all;
}

bool is_named(const Job& job, const std::string& name) {
  return job.label == name || (job.run_id.empty() ? kUnnamed : job.run_id) == name;
}

}  // namespace

Job one_job(const read::Traces& traces, const Choice& choice) {
  std::vector<Job> jobs = jobs_of(processes_of(traces));
  Job* chosen = nullptr;
  for (Job& job : jobs) {  // in the order of their start
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
    const bool attempts =
        std::ranges::all_of(jobs, [&](const Job& job) { return job.run_id == chosen->run_id; });
    chosen->beside = fmt::format("{} {} are here and this is the last to start, {}; not shown: {}",
                                 jobs.size(), attempts ? "attempts of one run" : "runs",
                                 text::printable(chosen->label), list(jobs, chosen));
  }
  return std::move(*chosen);
}

}  // namespace tprof::job
