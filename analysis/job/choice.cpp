#include "job/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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
  std::set<std::string_view> hosts;
  for (const read::Process* p : job.processes) hosts.insert(p->header.host);
  return fmt::format(
      "{} ({} on {}, {} to {}, {})", text::printable(job.label),
      job.ranks.empty() ? "no rank" : "ranks " + text::ranges(job.ranks),
      hosts.size() == 1 ? text::printable(*hosts.begin()) : fmt::format("{} hosts", hosts.size()),
      text::utc(job.from_ns), job.until_ns == INT64_MAX ? "now" : text::utc(job.until_ns),
      text::printable(job.processes.front()->header.command));
}

// Describes how jobs, sorted by start, relate to each other.
std::string_view kind_of(const std::vector<Job>& jobs) {
  bool attempts = !jobs.front().run_id.empty();
  bool together = false;
  std::int64_t until_ns = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    attempts = attempts && jobs[i].run_id == jobs.front().run_id &&
               jobs[i].attempt == static_cast<int>(i) + 1;
    together = together || jobs[i].from_ns < until_ns;
    until_ns = std::max(until_ns, jobs[i].until_ns);
  }
  if (attempts) return "attempts of one run";
  if (!together) return "runs";
  return jobs.size() == 2 ? "jobs of the same time" : "jobs, some of the same time";
}

// Lists the first few jobs other than `but`.
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

// The whole name, or its beginning.
enum class Fit { same, begins };

bool is_named(const Job& job, const std::string& name, Fit fit) {
  const std::string id = job.run_id.empty() ? kUnnamed : job.run_id;
  return fit == Fit::begins ? id.starts_with(name) : id == name || job.label == name;
}

}  // namespace

Job one_job(const read::Traces& traces, const Choice& choice) {
  std::vector<Job> jobs = jobs_of(processes_of(traces));
  const bool whole = std::ranges::any_of(
      jobs, [&](const Job& job) { return is_named(job, choice.run, Fit::same); });
  Job* chosen = nullptr;
  for (Job& job : jobs) {  // sorted by start
    if (!is_named(job, choice.run, whole ? Fit::same : Fit::begins)) continue;
    if (choice.attempt != 0 && job.attempt != choice.attempt) continue;
    if (!choice.run.empty() && chosen != nullptr && chosen->run_id != job.run_id) {
      throw read::BadInput(fmt::format("several runs begin with '{}': {}", choice.run, list(jobs)));
    }
    chosen = &job;
  }
  if (chosen == nullptr) {
    const std::string attempt =
        choice.attempt == 0 ? "" : fmt::format("attempt {} of ", choice.attempt);
    const std::string run = choice.run.empty() ? "any run" : "run '" + choice.run + "'";
    throw read::BadInput(fmt::format("no {}{} here, but: {}", attempt, run, list(jobs)));
  }
  if (jobs.size() > 1 && choice.run.empty() && choice.attempt == 0) {
    chosen->beside =
        fmt::format("there are {} {}; this is the last to start, {}; not shown: {}", jobs.size(),
                    kind_of(jobs), text::printable(chosen->label), list(jobs, chosen));
  }
  return std::move(*chosen);
}

}  // namespace tprof::job
