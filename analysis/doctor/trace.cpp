#include "doctor/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "check/diagnose.h"
#include "check/names.h"
#include "check/started.h"
#include "text/text.h"

namespace tprof::doctor {
namespace {

using read::Process;

// Returns, for each function and library, the processes that it served and the calls of all.
std::vector<Function> functions(const job::Job& job) {
  struct Use {
    std::uint64_t calls = 0;
    std::vector<const Process*> processes;
  };
  std::map<std::pair<std::string, std::string>, Use> uses;
  for (const Process* p : job.processes) {
    if (!p->footer) continue;
    for (const read::BoundFunction& f : p->footer->functions) {
      Use& use = uses[{f.name, f.library}];
      if (p->lane == 0) use.calls += f.calls;  // those of the whole process
      use.processes.push_back(p);
    }
  }
  std::vector<Function> all;
  for (const auto& [key, use] : uses) {
    const bool everywhere = use.processes.size() == job.processes.size();
    all.push_back({key.first, key.second, use.calls,
                   everywhere ? text::Ranks() : check::ranks_of(use.processes)});
  }
  // Functions that move data come first. The others count no calls.
  std::stable_partition(all.begin(), all.end(), [](const Function& f) { return f.calls != 0; });
  return all;
}

// Adds a fact for each group of processes with the same text.
template <typename Text>
void fact_of_each(Report& report, const job::Job& job, std::string_view key, const Text& text) {
  std::map<std::string, std::vector<const Process*>> groups;
  for (const Process* p : job.processes) {
    if (std::string t = text(*p); !t.empty()) groups[std::move(t)].push_back(p);
  }
  for (const auto& [t, processes] : groups) {
    const bool all = processes.size() == job.processes.size();
    report.fact(std::string(key), all ? t : t + "  (" + check::names_of(processes) + ")");
  }
}

}  // namespace

Report report_of_traces(const job::Job& job, const read::Traces& traces) {
  Report r{.about = "trace", .counted = true};
  r.fact("run", job.label);
  r.fact("processes", fmt::format("{}{}", job.processes.size(),
                                  job.ranks.empty() ? "" : ", ranks " + text::ranges(job.ranks)));
  fact_of_each(r, job, "command", [](const Process& p) { return p.header.command; });
  fact_of_each(r, job, "NCCL", [](const Process& p) { return p.header.nccl_path; });
  fact_of_each(r, job, "CUDA", [](const Process& p) { return p.header.cudart_path; });
  fact_of_each(r, job, "cross-check", [](const Process& p) -> std::string {
    if (!p.footer || !p.footer->missed) return "";
    return p.footer->missed->empty() ? "every call that NCCL told of (NVTX) passed libtprof.so"
                                     : "NCCL told of calls (NVTX) that passed libtprof.so by";
  });
  const auto unknown =
      std::ranges::count_if(job.processes, [](const Process* p) { return !p->footer; });
  if (unknown != 0) {
    r.fact("unknown", fmt::format("{} of {} processes did not say what served them", unknown,
                                  job.processes.size()));
  }
  r.functions = functions(job);
  std::set<std::pair<std::string, std::string>> tools;
  for (const Process* p : job.processes) {
    if (!p->footer) continue;
    for (const read::Noted& n : p->footer->tools) tools.emplace(n.kind, n.path);
  }
  for (const auto& [kind, path] : tools) r.tools.push_back({kind, path});
  for (const check::Started& s : check::started_with(job.processes)) {
    if (s.about == check::Started::About::config)
      (s.differs() ? r.differ : r.settings)[s.name] = s.whose();
  }
  r.findings =
      check::diagnose(job, traces, {.asked = check::kDoctor, .read_lines = false}).findings;
  return r;
}

}  // namespace tprof::doctor
