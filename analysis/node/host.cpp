#include "node/host.h"

#include <fcntl.h>
#include <unistd.h>

#include "interpose/base/clock.h"
#include "interpose/base/each_entry.h"
#include "interpose/base/text.h"

namespace tprof::node {
namespace {

int open_to_read(const char* path) {
  return open(path, O_RDONLY | O_CLOEXEC);
}

// True if an entry of a /sys folder has a device, so it is neither a partition nor composed of
// others (a volume, a RAID, a bond, a bridge).
bool has_device(int folder, std::string_view name) {
  char path[64];
  FixedText(path) << name << "/device";
  return folder >= 0 && faccessat(folder, path, F_OK, 0) == 0;
}

// True for one of several NVMe paths to a namespace, which would count the same as its nvme0n1.
bool is_path_to_disk(std::string_view name) {
  return name.starts_with("nvme") && name.find('c') != std::string_view::npos;
}

}  // namespace

Host::Host(const char* root) {
  const auto opened = [&](std::string_view path) {
    Path at;
    FixedText(at.text) << root << path;
    return open_to_read(at.text);
  };
  stat_ = opened("/proc/stat");
  meminfo_ = opened("/proc/meminfo");
  diskstats_ = opened("/proc/diskstats");
  net_ = opened("/proc/net/dev");
  disks_ = opened("/sys/block");
  interfaces_ = opened("/sys/class/net");
  open_ports(root);
}

Host::~Host() {
  for (const int file : {stat_, meminfo_, diskstats_, net_, disks_, interfaces_}) close(file);
  for (std::size_t i = 0; i < ports_; ++i) {
    close(port_[i].received);
    close(port_[i].sent);
  }
}

void Host::open_ports(std::string_view root) {
  Path devices;
  FixedText(devices.text) << root << "/sys/class/infiniband";
  each_entry(devices.text, [&](std::string_view device, std::uint64_t) {
    Path ports;
    FixedText(ports.text) << devices.text << "/" << device << "/ports";
    each_entry(ports.text, [&](std::string_view number, std::uint64_t) {
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

std::string_view Host::text_of(int file) {
  return metrics::whole_text(file, buffer_);
}

// Returns a file's first line, as /proc/stat goes on with all interrupts.
std::string_view Host::line_of(int file) {
  constexpr std::size_t kLine = 512;
  const ssize_t n = pread(file, buffer_, kLine, 0);
  std::string_view text(buffer_, n < 0 ? 0 : static_cast<std::size_t>(n));
  return take_until(text, '\n');
}

void Host::read(HostMetrics& to) {
  to = {};
  to.at_ns = now_ns();
  parse_stat(line_of(stat_), to);
  parse_meminfo(text_of(meminfo_), to);
  const auto is_disk = [&](std::string_view name) {
    return !is_path_to_disk(name) && has_device(disks_, name);
  };
  const auto is_interface = [&](std::string_view name) { return has_device(interfaces_, name); };
  if (disks_ >= 0) parse_diskstats(text_of(diskstats_), is_disk, to);
  parse_net(text_of(net_), is_interface, which_, to);
  read_ports(to);
}

// In the kernel's ABI both counters are in units of four bytes.
void Host::read_ports(HostMetrics& to) {
  constexpr std::uint64_t kUnit = 4;
  Sum received;
  Sum sent;
  const auto number_in = [&](int file) {
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

}  // namespace tprof::node
