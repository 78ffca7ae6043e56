// Reads what a host does from files of /proc and /sys, which stay open.
#pragma once

#include <cstddef>
#include <string_view>

#include "interpose/format/metrics.h"
#include "node/parse.h"

namespace tprof::node {

class Host {
 public:
  // `root` goes before /proc and /sys, for tests.
  explicit Host(const char* root);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  // Takes a reading now. Values of a file that is not there are left out.
  void read(HostMetrics& to);

 private:
  struct Path {
    char text[256];
  };
  void open_ports(std::string_view root);
  std::string_view text_of(int file);
  std::string_view line_of(int file);
  void read_ports(HostMetrics& to);

  // The counters of an InfiniBand port. A node has a port for each of its GPUs, and two or three
  // more.
  struct Port {
    int received, sent;
  };
  static constexpr std::size_t kMostPorts = 16;
  static constexpr std::size_t kMostBytes = 64 << 10;  // 500 interfaces

  int stat_, meminfo_, diskstats_, net_;
  int disks_, interfaces_;  // folders
  Interfaces which_ = Interfaces::not_known;
  Port port_[kMostPorts];
  std::size_t ports_ = 0;
  char buffer_[kMostBytes] = {};
};

}  // namespace tprof::node
