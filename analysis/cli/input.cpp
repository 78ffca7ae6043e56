#include "cli/input.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/progress.h"
#include "read/error.h"
#include "report/text.h"

namespace tprof::cli {

read::Traces load(const std::vector<read::TraceFile>& files) {
  Progress progress("reading", files.size());
  return read::load_all(files, [&](std::size_t done) { progress(done); });
}

std::vector<const read::Process*> processes_of(const read::Traces& traces) {
  std::vector<const read::Process*> processes;
  for (const read::Trace& trace : traces.traces) {
    for (const read::Process& p : trace.processes) processes.push_back(&p);
  }
  return processes;
}

match::Job one_job(const read::Traces& traces, const std::string& run) {
  std::vector<match::Job> jobs = match::jobs_of(processes_of(traces));
  if (run.empty() && jobs.size() == 1) return std::move(jobs[0]);
  const auto chosen = std::ranges::find(jobs, run, &match::Job::label);
  if (!run.empty() && chosen != jobs.end()) return std::move(*chosen);
  std::string list;
  for (const match::Job& job : jobs) {
    list += fmt::format("{}{} ({}, {})", list.empty() ? "" : "; ", job.label,
                        job.ranks.empty() ? "no rank" : "ranks " + report::ranges(job.ranks),
                        job.processes.front()->header.command);
  }
  if (!run.empty()) throw read::BadInput(fmt::format("no run '{}' here, but: {}", run, list));
  throw read::BadInput(
      fmt::format("expected the traces of one run, found {} runs: {}: choose one with --run",
                  jobs.size(), list));
}

std::string quoted(const std::vector<std::filesystem::path>& paths) {
  std::string all;
  for (const auto& path : paths) {
    std::string word = path.string();
    const bool plain = std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("/._-+=:@%,").find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (!plain) {
      for (std::size_t i = 0; (i = word.find('\'', i)) != std::string::npos; i += 4) {
        word.replace(i, 1, "'\\''");
      }
      word.insert(0, 1, '\'').push_back('\'');
    }
    all += (all.empty() ? "" : " ") + word;
  }
  return all;
}

}  // namespace tprof::cli
