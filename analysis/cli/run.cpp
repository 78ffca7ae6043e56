#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "cli/feeding.h"
#include "cli/input.h"
#include "cli/stuck_watch.h"
#include "cli/torch_profiler.h"
#include "launch/child.h"
#include "launch/environment.h"
#include "read/error.h"
#include "read/load.h"
#include "read/ring_file.h"
#include "recover/recover.h"
#include "report/report.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

doctor::Settings settings(const Options& o, const fs::path& library, const fs::path& folder,
                          const std::string& run_id) {
  const std::string others = launch::process_env("LD_PRELOAD");
  doctor::Settings all = {{"LD_PRELOAD", library.string() + (others.empty() ? "" : ":" + others)},
                          {"TPROF_OUTPUT_DIR", fs::absolute(folder).string()},
                          {"TPROF_RUN_ID", run_id}};
  // Never replaces a user's tool: NVTX has only one place for one.
  if (launch::process_env("NVTX_INJECTION64_PATH").empty()) {
    all.emplace_back("NVTX_INJECTION64_PATH", library.string());
  }
  if (!o.events.empty()) all.emplace_back("TPROF_EVENTS", o.events);
  if (!o.quota.empty()) all.emplace_back("TPROF_QUOTA", o.quota);
  if (!o.ranks.empty()) all.emplace_back("TPROF_RANKS", o.ranks);
  return all;
}

// Completes rank files whose processes were killed, before this host's temporary folder goes.
void recover_dead(const fs::path& rank_file, const std::string& run_id) {
  try {
    const auto header = read::beginning_of(rank_file).header;
    if (header && header->run_id == run_id) recover::recover(rank_file, false);
  } catch (const read::NotATrace&) {  // the summary says so
  } catch (const read::BadInput& e) {
    fmt::print(stderr, "tprof: {}\n", text::printable(e.what()));
  }
}

// Gives back memory of the node that nobody has asked for since. It is other jobs', so nothing is
// said.
void give_back(const read::LeftRing& left) {
  try {
    if (left.has_rank_file()) {
      recover::recover(left.rank_file, false);
    } else {
      fs::remove(left.ring);
    }
  } catch (const std::exception&) {
  }
}

void finish_the_dead(const fs::path& folder, const std::string& run_id) {
  constexpr std::uint64_t kForgottenNs = 24 * 3'600'000'000'000;
  for (const read::LeftRing& left : read::left_rings(folder)) {
    std::error_code error;
    if (left.silent_ns > kForgottenNs) {
      give_back(left);
    } else if (left.has_rank_file() && fs::equivalent(left.folder, folder, error)) {
      recover_dead(left.rank_file, run_id);
    }
  }
}

// Rank files of this run, in a folder that may hold any number of other hosts' and other runs'.
struct Files {
  std::vector<read::TraceFile> ours;  // of processes that this command started, on this host
  bool others = false;                // there are some of other hosts
  bool other_runs = false;
};

Files files_of_run(const fs::path& folder, const std::string& run_id) {
  Files files;
  const std::string here = read::boot_id();
  for (const read::TraceFile& file : read::files_in(folder)) {
    const auto header = read::beginning_of(file.path).header;
    if (!header || header->run_id != run_id) {
      files.other_runs = files.other_runs || header;
      continue;
    }
    if (header->boot_id == here) {
      files.ours.push_back(file);
    } else {
      files.others = true;
    }
  }
  return files;
}

void print_summary(const Files& files, const fs::path& folder, const std::string& run_id) {
  const read::Traces traces = load(files.ours);
  const std::vector<job::Job> jobs = job::jobs_of(processes_of(traces));
  const std::string which = quoted({folder}) + typed({files.other_runs ? run_id : "", 0});
  std::string next = "tprof merge " + which + " -o trace.json.gz  (one timeline of all ranks)";
  if (files.others) next = "tprof summary " + which + "  (all hosts)";
  for (const job::Job& job : jobs) {
    const stats::Summary s = stats::summarise(job, traces, {.whole_job = !files.others});
    fmt::print(stderr, "\n{}", report::to_text(s, {.next = &job == &jobs.back() ? next : ""}));
  }
}

// Only one of many parallel tasks calls this.
void say_what_was_seen(const fs::path& folder, const std::string& run_id) {
  const Files files = files_of_run(folder, run_id);
  if (files.ours.empty()) {
    fmt::print(stderr, "tprof: no NCCL or CUDA call was seen, so nothing was written\n");
    return;
  }
  print_summary(files, folder, run_id);
}

// Writes one timeline of the ranks of this host, with what PyTorch's profiler saw of them. Each of
// many parallel tasks writes one of its own ranks.
void merge_with_torch(TorchProfiler& torch, const fs::path& folder, const std::string& run_id,
                      bool one_of_many) {
  const Files files = files_of_run(folder, run_id);
  const std::vector<TorchTrace> traces = torch.collect(files.ours);
  if (traces.empty()) return;
  Options o;
  for (const TorchTrace& t : traces) o.with.push_back(t.trace.string());
  if (one_of_many) {
    for (const TorchTrace& t : traces) o.paths.push_back(t.rank_file);
  } else {
    for (const read::TraceFile& file : files.ours) o.paths.push_back(file.path);
  }
  const std::string name = one_of_many ? "merged-" + traces[0].trace.stem().string() : "merged";
  o.output = free_name(traces[0].trace.parent_path(), name, ".json.gz");
  merge(o);
}

// Runs what is done when the command has ended. A failure must not keep us from exiting as the
// command did.
template <typename F>
void try_to(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    fmt::print(stderr, "tprof: {}\n", text::printable(e.what()));
  }
}

}  // namespace

int run(const Options& o) {
  if (o.command.empty() && o.stuck_after_s != Options().stuck_after_s) {
    throw read::BadInput("--stuck-after: only with --on-stuck CMD");
  }
  if (o.handlers.empty() && o.handler_wait_s != Options().handler_wait_s) {
    throw read::BadInput("--handler-wait: only with --handler CMD");
  }
  if (!o.with_torch_profiler && !o.torch_steps.empty()) {
    throw read::BadInput("--torch-steps: only with --with-torch-profiler");
  }
  if (!o.torch_steps.empty()) launch::torch_steps(o.torch_steps);
  const launch::Launch launch = launch::launch_of(launch::process_env);
  const std::string run_id = !o.run_id.empty()        ? o.run_id
                             : !launch.run_id.empty() ? launch.run_id
                                                      : launch::random_id();
  const fs::path library = launch::find_library();  // before anything is made
  if (!o.output.empty()) fs::create_directories(o.output);
  const fs::path folder =
      o.output.empty() ? launch::make_run_folder("tprof-traces", o.words[0], launch) : o.output;
  Feeding feeding(o, folder, run_id, launch);
  std::optional<TorchProfiler> torch;
  doctor::Settings all = settings(o, library, folder, run_id);
  if (o.with_torch_profiler) {
    torch.emplace(o, folder);
    all.insert(all.end(), torch->settings().begin(), torch->settings().end());
  }
  const int status = [&] {
    const StuckWatch watch(o, folder, run_id);
    return launch::run_child(o.words, all);
  }();
  launch::let_writes_fail();
  try_to([&] { finish_the_dead(folder, run_id); });
  try_to([&] { feeding.end(); });
  if (torch) try_to([&] { merge_with_torch(*torch, folder, run_id, launch.task.has_value()); });
  torch.reset();
  const bool speak = !o.quiet && launch.task.value_or(0) == 0;
  if (speak) try_to([&] { say_what_was_seen(folder, run_id); });
  if (o.output.empty()) {
    std::error_code not_empty;
    fs::remove(folder, not_empty);
  }
  launch::exit_like(status);
}

}  // namespace tprof::cli
