#include "interpose/metrics/sources.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "interpose/base/clock.h"
#include "interpose/base/each_entry.h"
#include "interpose/base/text.h"
#include "interpose/metrics/parse.h"

namespace tprof::metrics {
namespace {

std::uint64_t nanoseconds(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_usec) * 1'000;
}

// Reads the CPU time of all threads; getrusage is finer than the clock ticks of /proc/self/stat.
void read_usage(Metrics& to) {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  to.user_ns = nanoseconds(usage.ru_utime);
  to.system_ns = nanoseconds(usage.ru_stime);
  to.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
}

// True if an entry of a folder of /sys has a device. Then it is no partition, and not made of
// others (a volume, a RAID, a bond, a bridge).
bool has_device(const OwnFile& folder, std::string_view name) {
  char path[64];
  FixedText(path) << name << "/device";
  return folder.fd >= 0 && faccessat(folder.fd, path, F_OK, 0) == 0;
}

// True for one of several NVMe paths to a namespace, which counts what its nvme0n1 counts.
bool is_path_to_disk(std::string_view name) {
  return name.starts_with("nvme") && name.find('c') != std::string_view::npos;
}

}  // namespace

template <typename F>
void Sources::each_file(F&& f) {
  for (OwnFile* file :
       {&status_, &io_, &stat_, &meminfo_, &diskstats_, &net_, &disks_, &interfaces_}) {
    f(*file);
  }
  for (std::size_t i = 0; i < ports_; ++i) {
    f(port_[i].received);
    f(port_[i].sent);
  }
}

void Sources::open(const char* root, bool host) {
  host_ = host;
  const auto opened = [&](std::string_view path) {
    Path at;
    FixedText(at.text) << root << path;
    return open_to_read(at.text);
  };
  status_ = opened("/proc/self/status");
  io_ = opened("/proc/self/io");
  if (!host) return;
  stat_ = opened("/proc/stat");
  meminfo_ = opened("/proc/meminfo");
  diskstats_ = opened("/proc/diskstats");
  net_ = opened("/proc/net/dev");
  // These folders stay the same if the program puts itself under another root.
  disks_ = opened("/sys/block");
  interfaces_ = opened("/sys/class/net");
  open_ports(root);
}

void Sources::open_ports(std::string_view root) {
  Path devices;
  FixedText(devices.text) << root << "/sys/class/infiniband";
  each_entry(devices.text, [&](std::string_view device) {
    Path ports;
    FixedText(ports.text) << devices.text << "/" << device << "/ports";
    each_entry(ports.text, [&](std::string_view number) {
      if (ports_ == kMostPorts) return;
      const auto counter = [&](std::string_view name) {
        Path at;
        FixedText(at.text) << ports.text << "/" << number << "/counters/" << name;
        return open_to_read(at.text);
      };
      port_[ports_++] = {counter("port_rcv_data"), counter("port_xmit_data")};
    });
  });
}

void Sources::close() {
  each_file([](OwnFile& file) {
    if (file.still_ours()) ::close(file.fd);
    file = {};
  });
}

// Returns a file's text. Empty: there is none, or more than there is room for, so that no sum would
// be right.
std::string_view Sources::text_of(const OwnFile& file) {
  if (!file.still_ours()) return {};
  std::size_t size = 0;
  for (ssize_t n = 0; size < kMostBytes; size += static_cast<std::size_t>(n)) {
    n = pread(file.fd, buffer_ + size, kMostBytes - size, static_cast<off_t>(size));
    if (n < 0) return {};
    if (n == 0) return {buffer_, size};
  }
  return {};
}

// Returns a file's first line: /proc/stat goes on for as long as there are interrupts.
std::string_view Sources::line_of(const OwnFile& file) {
  constexpr std::size_t kLine = 512;
  if (!file.still_ours()) return {};
  const ssize_t n = pread(file.fd, buffer_, kLine, 0);
  std::string_view text(buffer_, n < 0 ? 0 : static_cast<std::size_t>(n));
  return take_until(text, '\n');
}

void Sources::read(Metrics& to) {
  const int before = errno;
  to = {};
  to.at_ns = now_ns();
  read_usage(to);
  parse_status(text_of(status_), to);
  parse_io(text_of(io_), to);
  if (host_) read_host(to);
  errno = before;
}

void Sources::read_host(Metrics& to) {
  parse_stat(line_of(stat_), to);
  parse_meminfo(text_of(meminfo_), to);
  const auto is_disk = [&](std::string_view name) {
    return !is_path_to_disk(name) && has_device(disks_, name);
  };
  const auto is_interface = [&](std::string_view name) { return has_device(interfaces_, name); };
  if (disks_.still_ours()) parse_diskstats(text_of(diskstats_), is_disk, to);
  const bool taken = interfaces_.fd >= 0 && !interfaces_.still_ours();
  if (!taken) parse_net(text_of(net_), is_interface, which_, to);
  read_ports(to);
}

// The kernel's ABI has both counters in units of four bytes.
void Sources::read_ports(Metrics& to) {
  constexpr std::uint64_t kUnit = 4;
  Sum received;
  Sum sent;
  const auto number_in = [&](const OwnFile& file) {
    std::string_view line = line_of(file);
    return take_number(line);
  };
  for (std::size_t i = 0; i < ports_; ++i) {
    received.add(number_in(port_[i].received));
    sent.add(number_in(port_[i].sent));
  }
  if (received.value() != kNotRead) to.infiniband_received = received.value() * kUnit;
  if (sent.value() != kNotRead) to.infiniband_sent = sent.value() * kUnit;
}

}  // namespace tprof::metrics
