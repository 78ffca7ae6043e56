#include "interpose/write/metric_sources.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/text.h"
#include "interpose/write/metric_lanes.h"

namespace tprof::metrics {
namespace {

std::uint64_t nanoseconds(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_usec) * 1'000;
}

// Reads the CPU time of all threads; getrusage is finer than the clock ticks of /proc/self/stat.
void read_usage(ProcessMetrics& to) {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  to.user_ns = nanoseconds(usage.ru_utime);
  to.system_ns = nanoseconds(usage.ru_stime);
  to.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
}

}  // namespace

void Sources::open(const char* root) {
  const auto opened = [&](std::string_view path) {
    char at[256];
    FixedText(at) << root << path;
    return open_to_read(at);
  };
  status_ = opened("/proc/self/status");
  io_ = opened("/proc/self/io");
}

void Sources::close() {
  for (OwnFile* file : {&status_, &io_}) {
    if (file->still_ours()) ::close(file->fd);
    *file = {};
  }
}

std::string_view Sources::text_of(const OwnFile& file) {
  return file.still_ours() ? whole_text(file.fd, buffer_) : std::string_view();
}

void Sources::read(ProcessMetrics& to) {
  const KeepErrno keep_errno;
  to = {};
  to.at_ns = now_ns();
  read_usage(to);
  parse_status(text_of(status_), to);
  parse_io(text_of(io_), to);
}

}  // namespace tprof::metrics
