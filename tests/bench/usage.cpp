// Runs a command and reports the resources that it alone used.
//
//   bench_usage FILE COMMAND [ARGUMENT...]
//
// Writes wall time, CPU time, peak memory and bytes read to FILE as JSON and exits with the
// command's status. A process starts with its parent's peak, so under Python no peak would be below
// Python's own. This program's own peak is a megabyte.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

namespace {

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

// Returns the bytes read by read calls, from the disk or the page cache. The process must not have
// been waited for yet.
long long bytes_read(pid_t pid) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/io", static_cast<int>(pid));
  long long bytes = -1;
  if (std::FILE* io = std::fopen(path, "r")) {
    if (std::fscanf(io, "rchar: %lld", &bytes) != 1) bytes = -1;
    std::fclose(io);
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 125;
  const double began = now();
  const pid_t child = fork();
  if (child == 0) {
    execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    _exit(127);
  }
  siginfo_t ended{};
  if (child < 0 || waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) != 0)
    return 125;
  const double wall = now() - began;
  const long long read = bytes_read(child);
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  std::FILE* out = std::fopen(argv[1], "w");
  if (out == nullptr) return 125;
  std::fprintf(out, "{\"wall_s\":%.6f,\"cpu_s\":%.6f,\"peak_bytes\":%lld,\"read_bytes\":%lld}\n",
               wall, seconds(used.ru_utime) + seconds(used.ru_stime),
               static_cast<long long>(used.ru_maxrss) * 1024, read);
  std::fclose(out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
