// Parses files of /proc. Numbers that are not there stay kNotRead.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/format/metrics.h"

namespace tprof::metrics {

// Takes off and returns what stands before the first `end`.
inline std::string_view take_until(std::string_view& text, char end) {
  const std::string_view taken = prefix(text, text.find(end));
  text = without_prefix(text, taken.size() + 1);
  return taken;
}

inline std::string_view take_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  return take_until(text, ' ');
}

// Takes the next number of a line. kNotRead: there is none.
inline std::uint64_t take_number(std::string_view& text) {
  const std::string_view word = take_word(text);
  std::uint64_t n = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), n);
  return error == std::errc() && rest == word.data() + word.size() ? n : kNotRead;
}

// Finds the number of `key` in lines such as "VmRSS:     1728 kB". `unit`: bytes in one unit of it.
inline std::uint64_t number_of(std::string_view text, std::string_view key,
                               std::uint64_t unit = 1) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ':') != key) continue;
    if (line.starts_with('\t')) line.remove_prefix(1);
    const std::uint64_t n = take_number(line);
    return n > kNotRead / unit ? kNotRead : n * unit;
  }
  return kNotRead;
}

// A sum of several numbers. It is not known if there are none, or if one of them is not known.
struct Sum {
  std::uint64_t total = kNotRead;
  bool unknown = false;
  void add(std::uint64_t n) {
    unknown = unknown || n == kNotRead;
    total = total == kNotRead ? n : total + n;
  }
  std::uint64_t value() const { return unknown ? kNotRead : total; }
};

// /proc/self/status and /proc/self/io.
inline void parse_status(std::string_view text, Metrics& to) {
  to.resident = number_of(text, "VmRSS", 1024);
  to.file = number_of(text, "RssFile", 1024);
  to.threads = number_of(text, "Threads");
}
inline void parse_io(std::string_view text, Metrics& to) {
  to.read_bytes = number_of(text, "read_bytes");
  to.written_bytes = number_of(text, "write_bytes");
}

// /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. A guest's time is in user and
// nice already.
inline void parse_stat(std::string_view text, Metrics& to) {
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

inline void parse_meminfo(std::string_view text, Metrics& to) {
  to.available = number_of(text, "MemAvailable", 1024);
  to.cached = number_of(text, "Cached", 1024);
  to.dirty = number_of(text, "Dirty", 1024);
}

// /proc/diskstats. `is_device(name)` is true for a whole disk that exists.
template <typename F>
void parse_diskstats(std::string_view text, F&& is_device, Metrics& to) {
  constexpr std::uint64_t kSector = 512;  // this file's unit, whatever the disk's is
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

// Traffic through a bond, a bridge or a VLAN goes through a device too, and would count twice. If
// no interface is a device (in a container), all but lo count. The first reading decides which.
enum class Interfaces : std::uint8_t { not_known, devices, all };

// /proc/net/dev.
template <typename F>
void parse_net(std::string_view text, F&& is_device, Interfaces& which, Metrics& to) {
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

}  // namespace tprof::metrics
