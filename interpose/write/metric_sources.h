// Reads metrics of the process from files of /proc. They are kept open, since a program that closes
// its lowest descriptors counts on the numbers that its next open() gets.
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

  // Takes a reading now, without allocation. Values of a file that is not there, or that the
  // program has closed, are left out.
  void read(ProcessMetrics& to);

  // A forked child calls this, since the open files are of the parent's process.
  void close();

 private:
  static constexpr std::size_t kMostBytes = 16 << 10;  // of a user in 1,500 groups
  std::string_view text_of(const OwnFile& file);

  OwnFile status_, io_;
  char buffer_[kMostBytes];
};

}  // namespace tprof::metrics
