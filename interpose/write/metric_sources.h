// Reads metrics of the process from files of /proc. They stay open: a program that closes its
// lowest descriptors relies on the numbers of its next open().
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/held_signals.h"
#include "interpose/format/metrics.h"
#include "interpose/write/metric_lanes.h"

namespace tprof::metrics {

inline std::uint64_t nanoseconds(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_usec) * 1'000;
}

// Reads the CPU time of all threads; getrusage is finer than the clock ticks of /proc/self/stat.
inline void read_usage(ProcessMetrics& to) {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  to.user_ns = nanoseconds(usage.ru_utime);
  to.system_ns = nanoseconds(usage.ru_stime);
  to.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
}

class Sources {
 public:
  // `root` goes before /proc, for tests.
  void open(const char* root) {
    const auto opened = [&](std::string_view path) {
      char at[256];
      FixedText(at) << root << path;
      return open_file(at, O_RDONLY);
    };
    status_ = opened("/proc/self/status");
    io_ = opened("/proc/self/io");
  }

  // Takes a reading now, without allocation. Leaves out values of files that are missing, or closed
  // by the program.
  void read(ProcessMetrics& to) {
    const KeepErrno keep_errno;
    to = {};
    to.at_ns = now_ns();
    read_usage(to);
    parse_status(text_of(status_), to);
    parse_io(text_of(io_), to);
  }

  // For a forked child, since the open files describe the parent.
  void close() {
    for (OwnFile* file : {&status_, &io_}) {
      if (file->still_ours()) ::close(file->fd);
      *file = {};
    }
  }

 private:
  static constexpr std::size_t kMostBytes = 16 << 10;  // enough for 1,500 groups
  std::string_view text_of(const OwnFile& file) {
    return file.still_ours() ? whole_text(file.fd, buffer_) : std::string_view();
  }

  OwnFile status_, io_;
  char buffer_[kMostBytes];
};

}  // namespace tprof::metrics
