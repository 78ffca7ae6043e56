// Reads metrics from files of /proc and /sys. They are kept open, since a program that closes its
// lowest descriptors counts on the numbers that its next open() gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/disk_space.h"
#include "interpose/format/metrics.h"
#include "interpose/metrics/parse.h"

namespace tprof::metrics {

class Sources {
 public:
  // `root` goes before /proc and /sys, for tests. `host`: read the host's metrics too.
  void open(const char* root, bool host);

  // Takes a reading now, without allocation. Values of a file that is not there, or that the
  // program has closed, are left out.
  void read(Metrics& to);

  // A forked child calls this, since the open files are of the parent's process.
  void close();

 private:
  struct Path {
    char text[256];
  };
  void open_ports(std::string_view root);
  std::string_view text_of(const OwnFile& file);
  std::string_view line_of(const OwnFile& file);
  void read_host(Metrics& to);
  void read_ports(Metrics& to);
  template <typename F>
  void each_file(F&& f);

  // The counters of an InfiniBand port. A node has a port for each of its GPUs, and two or three
  // more.
  struct Port {
    OwnFile received, sent;
  };
  static constexpr std::size_t kMostPorts = 16;
  static constexpr std::size_t kMostBytes = 64 << 10;  // 500 interfaces

  bool host_ = false;
  OwnFile status_, io_, stat_, meminfo_, diskstats_, net_;
  OwnFile disks_, interfaces_;  // folders
  Interfaces which_ = Interfaces::not_known;
  Port port_[kMostPorts];
  std::size_t ports_ = 0;
  char buffer_[kMostBytes];
};

}  // namespace tprof::metrics
