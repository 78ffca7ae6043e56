#include "launch/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <stdexcept>

#include "children/child.h"
#include "interpose/format/output_folder.h"
#include "read/error.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {

namespace fs = std::filesystem;

namespace {

// The variables of each launcher that name the run and our task.
struct Launcher {
  const char* run_id;
  const char* task;
};
constexpr std::array kLaunchers = {
    Launcher{"TORCHELASTIC_RUN_ID", "RANK"},
    Launcher{"SLURM_JOB_ID", "SLURM_PROCID"},
    Launcher{"PMIX_NAMESPACE", "PMIX_RANK"},
    Launcher{"OMPI_MCA_ess_base_jobid", "OMPI_COMM_WORLD_RANK"},
    Launcher{"PBS_JOBID", "PMI_RANK"},
    Launcher{"LSB_JOBID", "PMI_RANK"},
};

std::string set_value(const Env& env, const char* name) {
  std::string value = env(name);
  return value == "none" ? std::string() : value;  // torchrun without --rdzv-id
}

// A batch script and the shell of `salloc` also have Slurm's job id and process id 0, but only a
// step is a parallel task. The former has no step, the latter a special step number (slurm.h).
std::string step_of_slurm(const Env& env) {
  constexpr std::int64_t kFirstSpecial = 0xffff'fff0;
  std::string step = env("SLURM_STEP_ID");
  return text::number<std::int64_t>(step).value_or(kFirstSpecial) < kFirstSpecial ? step
                                                                                  : std::string();
}

// Returns a name that needs no quotes anywhere.
std::string plain(std::string_view s) {
  std::string out;
  for (const char c : s) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    out += plain || c == '.' || c == '_' || c == '-' ? c : '_';
  }
  return out;
}

constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};

// The shell's exit codes (POSIX, 2.8.2): not found, found but not executable.
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

}  // namespace

std::string process_env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Launch launch_of(const Env& env) {
  Launch launch;
  launch.run_id = set_value(env, "TPROF_RUN_ID");
  for (const Launcher& l : kLaunchers) {
    const std::string id = set_value(env, l.run_id);
    if (id.empty()) continue;
    const bool slurm = l.run_id == std::string_view("SLURM_JOB_ID");
    const std::string step = slurm ? step_of_slurm(env) : "";
    if (launch.run_id.empty()) launch.run_id = step.empty() ? id : fmt::format("{}.{}", id, step);
    if (!slurm || !step.empty()) launch.task = text::number<std::int64_t>(env(l.task));
    break;
  }
  return launch;
}

fs::path find_library() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path prefix = folder.parent_path();
  const std::array candidates = {folder / "libtprof.so", prefix / "lib/libtprof.so",
                                 prefix / "lib/tprof/libtprof.so"};  // in a distribution
  for (const fs::path& candidate : candidates) {
    if (!fs::exists(candidate)) continue;
    // The loader splits LD_PRELOAD at both, and they can't be quoted (ld.so(8)).
    if (candidate.string().find_first_of(": \t") != std::string::npos) {
      throw read::BadInput(candidate, "LD_PRELOAD can't hold a path with a colon or a space");
    }
    return candidate;
  }
  throw read::BadInput(fmt::format("libtprof.so found neither as {} nor as {} or {}",
                                   candidates[0].string(), candidates[1].string(),
                                   candidates[2].string()));
}

std::string name_of_run(const std::vector<std::string>& command) {
  constexpr std::string_view kStarts[] = {"torchrun", "accelerate", "deepspeed"};
  bool starts = false;  // an earlier word starts scripts
  for (const std::string& word : command) {
    const fs::path name = fs::path(word).filename();
    if (name.extension() == ".py" && (starts || &word == command.data())) return name.stem();
    starts = starts || name.string().starts_with("python") ||
             std::ranges::find(kStarts, name.string()) != std::end(kStarts);
  }
  return fs::path(command.at(0)).filename();
}

fs::path make_run_folder(const fs::path& parent, const std::vector<std::string>& command,
                         const Launch& launch) {
  const std::string name = plain(name_of_run(command));
  if (launch.task && !launch.run_id.empty()) {
    fs::path folder = parent / (name + "-" + plain(launch.run_id));
    fs::create_directories(folder);
    return folder;
  }
  fs::create_directories(parent);
  const std::string date = fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
  for (int n = 0;; ++n) {
    fs::path folder = parent / fmt::format("{}-{}-{}", name, date, n);
    if (fs::create_directory(folder)) return folder;
  }
}

std::string host_name() {
  char name[65] = {};
  if (gethostname(name, sizeof name) != 0) name[sizeof name - 1] = '\0';  // too long: cut off
  return name;
}

fs::path folder_of(const std::string& pattern, const Env& env) {
  std::string folder;
  each_part_of_folder(pattern, [&](char sign, std::string_view text) {
    std::string id;
    if (sign == 'j') {
      for (const char* name : kJobIds) id = id.empty() ? set_value(env, name) : id;
      folder += id.empty() ? kNoJob : id;
    } else if (sign == 'h') {
      folder += host_name();
    } else if (sign == '\0') {
      folder += text;
    } else {
      throw read::BadInput(
          fmt::format("{}: %{} makes a folder for each process, but tprof run needs one for all: "
                      "expected only %j (job) and %h (host)",
                      pattern, sign));
    }
  });
  return folder;
}

std::string random_id() {
  std::random_device device;
  const std::uint64_t high = device();
  return fmt::format("{:016x}", high << 32 | device());
}

// Signals are blocked and fetched one by one, so none is lost and no handler runs.
int run_child(const std::vector<std::string>& command, const doctor::Settings& settings) {
  sigset_t awaited;
  sigset_t before;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (const int signal : kPassedOn) sigaddset(&awaited, signal);
  std::signal(SIGCHLD, SIG_DFL);  // if ignored, it would take the wait status from us
  sigprocmask(SIG_BLOCK, &awaited, &before);

  children::Child child([&] {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    doctor::become(command, settings);
    const int error = errno;
    text::say("tprof: {}: {}\n", text::printable(command[0]), std::strerror(error));
    return error == ENOENT ? kNotFound : kNotExecutable;
  });
  if (child.pid() < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  std::optional<int> status;
  while (!(status = child.ended())) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&awaited, &info);
    if (signal < 0 || signal == SIGCHLD) continue;
    // A signal from the terminal (Ctrl-C) goes to the whole process group, so the command already
    // has it.
    if (info.si_code != SI_KERNEL) child.kill(signal);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return *status;
}

void let_writes_fail() {
  std::signal(SIGXFSZ, SIG_IGN);
}

void exit_like(int wait_status) {
  std::fflush(nullptr);
  if (!WIFSIGNALED(wait_status)) _exit(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  // Our core dump would overwrite the command's.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  std::signal(signal, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  _exit(128 + signal);
}

}  // namespace tprof::launch
