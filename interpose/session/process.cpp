#include "process.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <string_view>

#include "interpose/format/text.h"

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
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return false;
  const char* end = text + std::strlen(text);
  std::int64_t parsed = 0;
  const auto result = std::from_chars(text, end, parsed);
  if (result.ec != std::errc() || result.ptr != end || parsed < 0) return false;
  value = parsed;
  return true;
}

// What launchers export: torchrun, accelerate, deepspeed; Open MPI; MVAPICH; MPICH and Intel MPI;
// Slurm. Each line is taken whole: rank, world size, local rank.
struct LauncherVariables {
  const char *rank, *world, *local, *id;
};
constexpr LauncherVariables kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "PMIX_NAMESPACE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", nullptr},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_ID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
};

void rank_from_environment(Process& p) {
  p.rank = p.world_size = p.local_rank = -1;
  for (const auto& v : kLaunchers) {
    std::int64_t rank = 0;
    std::int64_t world = 0;
    if (!number(v.rank, rank) || !number(v.world, world) || rank >= world) continue;
    // One Slurm task that starts its ranks itself says nothing about them.
    if (world == 1 && std::strcmp(v.rank, "SLURM_PROCID") == 0) continue;
    p.rank = rank;
    p.world_size = world;
    number(v.local, p.local_rank);
    return;
  }
}

void copy_environment(const char* name, char* to, std::size_t size) {
  const char* text = name == nullptr ? nullptr : std::getenv(name);
  if (to[0] != '\0' || text == nullptr || std::strcmp(text, "none") == 0) return;
  const std::size_t n = std::min(std::strlen(text), size - 1);
  std::memcpy(to, text, n);
  to[n] = '\0';
}

// Letters only: ORing 0x20 into any character would change '_' too.
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

bool contains(std::string_view text, std::string_view word) {
  for (std::size_t i = 0; i + word.size() <= text.size(); ++i) {
    std::size_t n = 0;
    while (n < word.size() && lower(text[i + n]) == word[n]) ++n;
    if (n == word.size()) return true;
  }
  return false;
}

bool names_a_secret(std::string_view name) {
  constexpr std::string_view kWords[] = {"token",      "secret",     "passw",
                                         "api_key",    "api-key",    "apikey",
                                         "credential", "access_key", "access-key"};
  for (std::string_view word : kWords) {
    if (contains(name, word)) return true;
  }
  return false;
}

// "--api-token abc" and "token=abc" become "--api-token ***" and "token=***".
void read_command(Process& p) {
  char raw[sizeof p.command];
  const std::size_t size = read_file("/proc/self/cmdline", raw, sizeof raw);
  std::size_t n = 0;
  const auto put = [&](std::string_view s) {
    const std::size_t take = std::min(s.size(), sizeof p.command - 1 - n);
    std::memcpy(p.command + n, s.data(), take);
    n += take;
  };
  bool hide_next = false;
  for (std::size_t at = 0; at < size;) {
    const std::string_view argument(raw + at);
    at += argument.size() + 1;
    if (n != 0) put(" ");
    const std::size_t equals = argument.find('=');
    if (hide_next && !argument.starts_with('-')) {
      put("***");
      hide_next = false;
    } else if (equals != std::string_view::npos && names_a_secret(prefix(argument, equals))) {
      put(prefix(argument, equals + 1));
      put("***");
      hide_next = false;
    } else {
      put(argument);
      hide_next = argument.starts_with('-') && names_a_secret(argument);
    }
  }
  p.command[n] = '\0';
}

void read_start(Process& p) {
  char stat[1024];
  read_file("/proc/self/stat", stat, sizeof stat);
  // The second field is the name in parentheses and may hold anything: count from its end.
  const char* at = std::strrchr(stat, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  if (at == nullptr) return;
  std::from_chars(at + 1, stat + sizeof stat, p.start_ticks);
  timespec boot{};
  timespec real{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_REALTIME, &real);
  const auto ns = [](const timespec& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(t.tv_nsec);
  };
  const auto ticks = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  const std::uint64_t since_boot = ticks == 0 ? 0 : p.start_ticks * (1'000'000'000 / ticks);
  p.start_ns = ns(real) - ns(boot) + since_boot;
}

}  // namespace

Process describe_process() {
  Process p{};
  if (gethostname(p.host, sizeof p.host - 1) != 0) p.host[0] = '\0';
  const std::size_t n = read_file("/proc/sys/kernel/random/boot_id", p.boot_id, sizeof p.boot_id);
  if (n != 0 && p.boot_id[n - 1] == '\n') p.boot_id[n - 1] = '\0';
  p.pid = getpid();
  read_start(p);
  rank_from_environment(p);
  number("TORCHELASTIC_RESTART_COUNT", p.restart);
  copy_environment("SLURM_JOB_ID", p.job_id, sizeof p.job_id);
  copy_environment("PBS_JOBID", p.job_id, sizeof p.job_id);
  copy_environment("LSB_JOBID", p.job_id, sizeof p.job_id);
  for (const auto& v : kLaunchers) copy_environment(v.id, p.run_id, sizeof p.run_id);
  copy_environment("SLURM_JOB_ID", p.run_id, sizeof p.run_id);
  read_command(p);
  return p;
}

}  // namespace tprof
