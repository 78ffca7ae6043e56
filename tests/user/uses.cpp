// Uses the system so that metrics have something to tell of, and prints what it used.
//
//   user_uses all FILE    three threads, 64 MiB, 32 MiB written to FILE, half a second of CPU
//   user_uses kill FILE   the same with less CPU, flushed; then SIGKILL
//   user_uses wait FILE   as little as can be, until FILE is there
//   user_uses fork FILE   the same with less CPU; then a child begins a trace, and prints its
//                         threads and the files of its parent that it has open
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "interpose/user/tprof.h"

namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;
constexpr std::size_t kWritten = std::size_t{32} << 20;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns what the kernel counts: 0 where FILE is in memory only.
std::uint64_t written_to_disk() {
  std::ifstream in("/proc/self/io");
  std::string key;
  std::uint64_t value = 0;
  while (in >> key >> value) {
    if (key == "write_bytes:") return value;
  }
  return 0;
}

void write_file(const char* path) {
  const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const std::vector<char> block(1 << 20, 'x');
  for (std::size_t n = 0; n < kWritten; n += block.size()) {
    if (write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size())) std::exit(2);
  }
  if (fsync(fd) != 0 || close(fd) != 0) std::exit(3);
}

void burn(double seconds) {
  for (const double until = cpu_seconds() + seconds; cpu_seconds() < until;) {
  }
}

int links_to(const std::string& folder) {
  int found = 0;
  DIR* own = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(own)) {
    char target[256] = {};
    if (readlinkat(dirfd(own), entry->d_name, target, sizeof target - 1) < 0) continue;
    found += std::string(target).rfind(folder, 0) == 0 ? 1 : 0;
  }
  closedir(own);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const std::string what = argv[1];
  tprof_instant("begin");
  tprof_flush(60'000);  // and a first reading
  if (what == "wait") {
    while (access(argv[2], F_OK) != 0) usleep(1000);
    return 0;
  }
  const double cpu = cpu_seconds();
  const std::uint64_t written = written_to_disk();
  for (int i = 0; i < 3; ++i) std::thread(pause).detach();
  void* memory = std::malloc(kMemory);
  std::memset(memory, 1, kMemory);
  write_file(argv[2]);
  const std::uint64_t on_disk = written_to_disk() - written;
  burn(what == "all" ? 0.5 : 0.15);
  std::printf("{\"cpu\":%.6f,\"memory\":%zu,\"written\":%lu,\"threads\":4}\n", cpu_seconds() - cpu,
              kMemory, on_disk);
  std::fflush(stdout);
  if (what == "kill") {
    tprof_flush(60'000);
    std::raise(SIGKILL);
  }
  if (what == "fork") {
    const std::string parents = "/proc/" + std::to_string(getpid()) + "/";
    const pid_t child = fork();
    if (child == 0) {
      const int before = links_to(parents);
      tprof_instant("child's");
      burn(0.2);
      std::printf("{\"of the parent\":%d,\"threads\":1}\n", before + links_to(parents));
      std::exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (links_to(parents) == 0) return 4;  // it looks where there is something to find
    return status;
  }
  return static_cast<char*>(memory)[kMemory - 1] - 1;
}
