#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/child.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/input.h"
#include "read/error.h"
#include "recover/recover.h"
#include "report/summary.h"
#include "report/text.h"

namespace tprof::cli {

namespace {

std::vector<Setting> settings(const RunOptions& o, const fs::path& library, const fs::path& folder,
                              const std::string& run_id) {
  const std::string others = process_env("LD_PRELOAD");
  std::vector<Setting> all = {
      {"LD_PRELOAD", library.string() + (others.empty() ? "" : ":" + others)},
      {"TPROF_OUTPUT_DIR", fs::absolute(folder).string()},
      {"TPROF_RUN_ID", run_id}};
  // Never over a user's tool: NVTX has one place only.
  if (process_env("NVTX_INJECTION64_PATH").empty()) {
    all.emplace_back("NVTX_INJECTION64_PATH", library.string());
  }
  if (!o.events.empty()) all.emplace_back("TPROF_EVENTS", o.events);
  if (!o.quota.empty()) all.emplace_back("TPROF_QUOTA", o.quota);
  if (!o.ranks.empty()) all.emplace_back("TPROF_RANKS", o.ranks);
  return all;
}

// Whether this command started it, on this host: a shared folder may hold those of others.
bool is_ours(const read::Process& p, const std::string& run_id) {
  return p.header.run_id == run_id && p.header.boot_id == boot_id();
}

// Rank files whose processes were killed get their end, before this host's temporary folder goes.
void recover_dead(const fs::path& folder, const std::string& run_id) {
  for (const read::TraceFile& file : read::trace_files({folder})) {
    try {
      const read::Trace trace = read::load(file.path);
      if (trace.processes.empty() || !is_ours(trace.processes.front(), run_id)) continue;
      recover::recover(file.path, false);
    } catch (const read::NotATrace&) {  // the summary says so
    } catch (const read::BadInput& e) {
      fmt::print(stderr, "tprof: {}\n", report::printable(e.what()));
    }
  }
}

void print_summary(const fs::path& folder, const std::string& run_id) {
  const read::Traces traces = load(read::trace_files({folder}));
  std::vector<const read::Process*> all = processes_of(traces);
  std::erase_if(all, [&](const read::Process* p) { return p->header.run_id != run_id; });
  std::vector<const read::Process*> here = all;
  std::erase_if(here, [&](const read::Process* p) { return !is_ours(*p, run_id); });
  const std::vector<match::Job> jobs = match::jobs_of(here);
  std::string next =
      "tprof merge " + quoted({folder}) + " -o trace.json.gz  (one timeline of all ranks)";
  if (here.size() < all.size()) next = "tprof summary " + quoted({folder}) + "  (all hosts)";
  for (const match::Job& job : jobs) {
    const report::Summary s =
        report::summarise(job, traces, {.whole_job = here.size() == all.size()});
    fmt::print(stderr, "\n{}", report::to_text(s, {.next = &job == &jobs.back() ? next : ""}));
  }
}

// What is left to do when the command has ended. Of many parallel tasks one speaks.
void finish(const fs::path& folder, const std::string& run_id, bool speak) {
  let_writes_fail();
  try {
    read::trace_files({folder});
  } catch (const read::BadInput&) {
    if (speak) {
      fmt::print(stderr, "tprof: no NCCL or CUDA call was seen, so nothing was written\n");
    }
    return;
  }
  recover_dead(folder, run_id);
  if (speak) print_summary(folder, run_id);
}

}  // namespace

int run(const RunOptions& o) {
  const Launch launch = launch_of(process_env);
  const std::string run_id = !o.run_id.empty()        ? o.run_id
                             : !launch.run_id.empty() ? launch.run_id
                                                      : random_id();
  const fs::path library = find_library();  // before anything is made
  if (!o.out.empty()) fs::create_directories(o.out);
  const fs::path folder =
      o.out.empty() ? make_run_folder("tprof-traces", o.command[0], launch) : o.out;
  const int status = run_child(o.command, settings(o, library, folder, run_id));
  try {
    finish(folder, run_id, !o.quiet && launch.task.value_or(0) == 0);
  } catch (const std::exception& e) {
    fmt::print(stderr, "tprof: {}\n", report::printable(e.what()));
  }
  if (o.out.empty()) {
    std::error_code not_empty;
    fs::remove(folder, not_empty);
  }
  exit_like(status);
}

}  // namespace tprof::cli
