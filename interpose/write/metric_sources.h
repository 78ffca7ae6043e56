// Reads metrics of the process from files of /proc. They stay open: a program that closes its
// lowest descriptors relies on the numbers of its next open().
#pragma once

#include <cstddef>
#include <string_view>

#include "interpose/base/disk_space.h"
#include "interpose/format/metrics.h"

namespace tprof::metrics {

class Sources {
 public:
  // `root` goes before /proc, for tests.
  void open(const char* root);

  // Takes a reading now, without allocation. Leaves out values of files that are missing, or closed
  // by the program.
  void read(ProcessMetrics& to);

  // For a forked child, since the open files describe the parent.
  void close();

 private:
  static constexpr std::size_t kMostBytes = 16 << 10;  // enough for 1,500 groups
  std::string_view text_of(const OwnFile& file);

  OwnFile status_, io_;
  char buffer_[kMostBytes];
};

}  // namespace tprof::metrics
