#include "engine/schedule.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace standin::schedule {
namespace {

// Returns the file of this process; a forked child has a file of its own.
int file() {
  static std::atomic<uint64_t> known{0};  // pid and descriptor
  const auto pid = static_cast<uint64_t>(getpid());
  uint64_t before = known.load();
  if (before >> 32 == pid) return static_cast<int>(before & UINT32_MAX);
  const std::string path =
      std::string(std::getenv("STANDIN_SCHEDULE")) + "/schedule-" + std::to_string(pid);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) {
    std::perror(path.c_str());
    std::abort();
  }
  if (known.compare_exchange_strong(before, pid << 32 | static_cast<uint64_t>(fd))) return fd;
  close(fd);  // another thread was first
  return static_cast<int>(before & UINT32_MAX);
}

}  // namespace

bool wanted() {
  static const bool is = std::getenv("STANDIN_SCHEDULE") != nullptr;
  return is;
}

void ran(const Line& line) {
  char text[400];
  const int n =
      std::snprintf(text, sizeof text, "%llu %.200s %lld %lld %lld %d %zu %d %s\n", line.stream,
                    line.what, static_cast<long long>(line.reached_ns),
                    static_cast<long long>(line.began_ns), static_cast<long long>(line.ended_ns),
                    line.device, line.calls, line.in_graph ? 1 : 0, line.way);
  if (write(file(), text, static_cast<size_t>(n)) != n) std::perror("STANDIN_SCHEDULE");
}

}  // namespace standin::schedule
