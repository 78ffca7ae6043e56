#include "interpose/session/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/environment.h"
#include "interpose/base/hash.h"
#include "interpose/base/own_memory.h"
#include "interpose/format/output_folder.h"
#include "interpose/session/redact.h"

namespace tprof {
namespace {

std::size_t read_file(const char* path, char* to, std::size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  std::size_t n = 0;
  if (fd >= 0) {
    for (ssize_t got = 0; n + 1 < size && (got = read(fd, to + n, size - 1 - n)) > 0;) {
      n += static_cast<std::size_t>(got);
    }
    close(fd);
  }
  to[n] = '\0';
  return n;
}

bool number(const char* name, std::int64_t& value) {
  const char* text = environment_value(name);
  if (text == nullptr) return false;
  std::int64_t parsed = 0;
  if (!parse_number(text, parsed) || parsed < 0) return false;
  value = parsed;
  return true;
}

// The variables that launchers export: torchrun, accelerate, deepspeed; Open MPI; MVAPICH; MPICH
// and Intel MPI; Slurm. All three come from the same row: rank, world size, local rank.
struct LauncherVariables {
  const char *rank, *world, *local, *id;
};
constexpr LauncherVariables kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "PMIX_NAMESPACE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", nullptr},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", nullptr},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
};

// The batch script and the shell of `salloc` also have a task's variables (SLURM_PROCID 0 and the
// job's SLURM_NTASKS), but are not tasks: they start ranks, or are a separate program. The script
// has no step, the shell a step with a special number (slurm.h).
const char* step_of_slurm() {
  constexpr std::int64_t kFirstSpecial = 0xffff'fff0;
  std::int64_t step = 0;
  const bool ordinary = number("SLURM_STEP_ID", step) && step < kFirstSpecial;
  return ordinary ? environment_value("SLURM_STEP_ID") : nullptr;
}

void local_rank_of_slurm(Process& p) {
  std::int64_t task = 0;
  const bool ours = step_of_slurm() != nullptr && number("SLURM_PROCID", task) && task == p.rank;
  if (ours) number("SLURM_LOCALID", p.local_rank);
}

void rank_from_environment(Process& p) {
  p.rank = p.world_size = p.local_rank = -1;
  for (const auto& v : kLaunchers) {
    std::int64_t rank = 0;
    std::int64_t world = 0;
    if (!number(v.rank, rank) || !number(v.world, world) || rank >= world) continue;
    // A single Slurm task that starts its ranks itself tells nothing about them.
    const bool slurm = std::strcmp(v.rank, "SLURM_PROCID") == 0;
    if (slurm && (world == 1 || step_of_slurm() == nullptr)) continue;
    p.rank = rank;
    p.world_size = world;
    // Slurm has it for `srun --mpi=pmi2` and scripts that set RANK.
    if (!number(v.local, p.local_rank)) local_rank_of_slurm(p);
    return;
  }
}

// Copies the variable unless `to` is already set.
template <std::size_t N>
void copy_environment(const char* name, char (&to)[N]) {
  const char* text = name == nullptr ? nullptr : environment_value(name);
  if (to[0] == '\0' && text != nullptr && std::strcmp(text, "none") != 0) copy_text(to, text);
}

// A job may have several steps, one after the other or at once: each is a run.
void run_id_of_slurm(Process& p) {
  const char* job = environment_value("SLURM_JOB_ID");
  if (p.run_id[0] != '\0' || job == nullptr) return;
  FixedText id(p.run_id);
  id << job;
  if (const char* step = step_of_slurm()) id << "." << step;
}

void read_command(Process& p, bool redact) {
  // Twice the size that is shown, so that no key is cut to something that does not look like a key.
  constexpr std::size_t kRoom = 2 * sizeof p.command;
  auto* raw = static_cast<char*>(take_memory(kRoom));
  if (raw == nullptr) return;
  const std::string_view arguments(raw, read_file("/proc/self/cmdline", raw, kRoom));
  FixedText command(p.command);
  if (redact) {
    redact_command(arguments, command);
  } else {
    std::replace(raw, raw + arguments.size(), '\0', ' ');
    command << prefix(arguments, arguments.size() - (arguments.empty() ? 0 : 1));
  }
  give_back_memory(raw, kRoom);
}

// Clock ticks from boot to the start of a process, 0: not known.
std::uint64_t start_ticks(const char* stat_file, char* state = nullptr) {
  char stat[1024];
  const std::size_t n = read_file(stat_file, stat, sizeof stat);
  // The second field is the name in parentheses and may hold anything: count from its end.
  const char* at = std::strrchr(stat, ')');
  if (at != nullptr && state != nullptr && at + 2 < stat + n) *state = at[2];
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  std::uint64_t ticks = 0;
  if (at != nullptr) std::from_chars(at + 1, stat + n, ticks);
  return ticks;
}

// Reads what identifies the processes of one launch if nothing else does.
void read_launch(Process& p) {
  char stat[32];
  p.parent_pid = getppid();
  (FixedText(stat) << "/proc/").number(p.parent_pid) << "/stat";
  p.parent_ticks = start_ticks(stat);
  const char* address = environment_value("MASTER_ADDR");
  const char* port = environment_value("MASTER_PORT");
  if (address == nullptr || port == nullptr) return;
  p.rendezvous = mix64(fnv1a(address) ^ mix64(fnv1a(port)));
}

// Leaves the namespace unknown if /proc belongs to another one, with other pids.
void read_namespace(Process& p) {
  char self[16];
  char link[64];
  FixedText(self).number(p.pid);
  const ssize_t shown = readlink("/proc/self", link, sizeof link);
  if (shown <= 0 || std::string_view(link, static_cast<std::size_t>(shown)) != self) return;
  constexpr std::string_view kBefore = "pid:[";
  const ssize_t n = readlink("/proc/self/ns/pid", link, sizeof link);
  const std::string_view name(link, n > 0 ? static_cast<std::size_t>(n) : 0);
  if (!name.starts_with(kBefore)) return;
  std::from_chars(link + kBefore.size(), link + n, p.pid_namespace);
}

void read_start(Process& p) {
  p.start_ticks = start_ticks("/proc/self/stat");
  if (p.start_ticks == 0) return;
  const auto ticks = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  const std::uint64_t since_boot = ticks == 0 ? 0 : p.start_ticks * (1'000'000'000 / ticks);
  p.start_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + since_boot;
}

}  // namespace

bool process_runs(std::int32_t pid, std::uint64_t started) {
  char stat[32];
  char state = 'R';
  (FixedText(stat) << "/proc/").number(pid) << "/stat";
  return start_ticks(stat, &state) == started && state != 'Z' && state != 'X';
}

void describe_process(bool redact, Process& p) {
  // Longer names are cut.
  if (gethostname(p.host, sizeof p.host) != 0) p.host[sizeof p.host - 1] = '\0';
  const std::size_t n = read_file("/proc/sys/kernel/random/boot_id", p.boot_id, sizeof p.boot_id);
  if (n != 0 && p.boot_id[n - 1] == '\n') p.boot_id[n - 1] = '\0';
  p.pid = getpid();
  read_namespace(p);
  read_start(p);
  read_launch(p);
  rank_from_environment(p);
  if (!number("TORCHELASTIC_RESTART_COUNT", p.restart)) number("SLURM_RESTART_COUNT", p.restart);
  for (const char* name : kJobIds) copy_environment(name, p.job_id);
  for (const auto& v : kLaunchers) copy_environment(v.id, p.run_id);
  run_id_of_slurm(p);
  read_command(p, redact);
}

}  // namespace tprof
