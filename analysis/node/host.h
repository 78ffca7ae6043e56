// Reads what a host does from files in /proc and /sys, which stay open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/not_copied.h"
#include "interpose/write/metric_lanes.h"
#include "read/node_metrics.h"

namespace tprof::node {

// Parsers for files in /proc. Missing numbers stay kNotRead.

using metrics::number_of;
using metrics::take_number;
using metrics::take_until;
using metrics::take_word;

// A sum, which is unknown if there are no numbers or one of them is unknown.
struct Sum {
  std::uint64_t total = kNotRead;
  bool unknown = false;
  void add(std::uint64_t n) {
    unknown = unknown || n == kNotRead;
    total = total == kNotRead ? n : total + n;
  }
  std::uint64_t value() const { return unknown ? kNotRead : total; }
};

// /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. user and nice include guest
// time.
inline void parse_stat(std::string_view text, HostMetrics& to) {
  if (take_word(text) != "cpu") return;
  constexpr int kFields = 8;
  constexpr int kIdle = 3;
  constexpr int kWaiting = 4;
  std::uint64_t all = 0;
  std::uint64_t busy = 0;
  for (int i = 0; i < kFields; ++i) {
    const std::uint64_t ticks = take_number(text);
    if (ticks == kNotRead) return;
    all += ticks;
    if (i != kIdle && i != kWaiting) busy += ticks;
  }
  to.all_ticks = all;
  to.busy_ticks = busy;
}

inline void parse_meminfo(std::string_view text, HostMetrics& to) {
  to.available = number_of(text, "MemAvailable", 1024);
  to.cached = number_of(text, "Cached", 1024);
  to.dirty = number_of(text, "Dirty", 1024);
}

// /proc/diskstats. `is_device(name)` is true for a whole disk that exists.
template <typename F>
void parse_diskstats(std::string_view text, F&& is_device, HostMetrics& to) {
  constexpr std::uint64_t kSector = 512;  // this file's unit, independent of the disk
  Sum read;
  Sum written;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    take_number(line);  // major, minor
    take_number(line);
    if (!is_device(take_word(line))) continue;
    std::uint64_t field[7];  // reads, merged, sectors, ms; writes, merged, sectors
    for (std::uint64_t& f : field) f = take_number(line);
    read.add(field[2]);
    written.add(field[6]);
  }
  const auto bytes = [](const Sum& sectors) {
    return sectors.value() == kNotRead ? kNotRead : sectors.value() * kSector;
  };
  to.disks_read = bytes(read);
  to.disks_written = bytes(written);
}

// Traffic through a bond, a bridge or a VLAN also goes through a device, and would count twice. If
// no interface is a device (in a container), all except lo count. The first reading decides.
enum class Interfaces : std::uint8_t { not_known, devices, all };

// /proc/net/dev.
template <typename F>
void parse_net(std::string_view text, F&& is_device, Interfaces& which, HostMetrics& to) {
  Sum received[2];
  Sum sent[2];
  take_until(text, '\n');  // two lines of headings
  take_until(text, '\n');
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    while (line.starts_with(' ')) line.remove_prefix(1);
    const std::string_view name = take_until(line, ':');
    if (name.empty() || name == "lo") continue;
    std::uint64_t field[9];  // received: bytes and seven more; sent: bytes
    for (std::uint64_t& f : field) f = take_number(line);
    const bool device = is_device(name);
    received[device].add(field[0]);
    sent[device].add(field[8]);
  }
  if (which == Interfaces::not_known) {
    which = received[1].total == kNotRead ? Interfaces::all : Interfaces::devices;
  }
  const bool devices = which == Interfaces::devices;
  to.network_received = received[devices].value();
  to.network_sent = sent[devices].value();
}

class Host : NotCopied {
 public:
  // `root`: a prefix of /proc and /sys, for tests.
  explicit Host(const char* root);
  ~Host();

  // Takes a reading now. Values of missing files are left out.
  void read(HostMetrics& to);

 private:
  struct Path {
    char text[256];
  };
  void open_ports(std::string_view root);
  std::string_view text_of(int file);
  std::string_view line_of(int file);
  void read_ports(HostMetrics& to);

  // The counters of an InfiniBand port. A node has a port for each GPU, and two or three more.
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
