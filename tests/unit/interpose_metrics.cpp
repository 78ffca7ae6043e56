// write/: what files of /proc say, and what lanes show of two readings.
#include <map>
#include <string>
#include <vector>

#include "catch2.h"
#include "interpose/write/metric_lanes.h"
#include "read/node_metrics.h"

using namespace tprof;
using namespace tprof::metrics;

namespace {

constexpr std::uint64_t kKiB = 1024;

constexpr std::string_view kStatus =
    "Name:\tThreads: 99\nVmHWM:\t   9000 kB\nVmRSS:\t    1728 kB\nRssAnon:\t     112 kB\n"
    "RssFile:\t    1616 kB\nThreads:\t17\nvoluntary_ctxt_switches:\t0\n";
constexpr std::string_view kIo =
    "rchar: 6976\nwchar: 11\nread_bytes: 4096\nwrite_bytes: 33554432\n"
    "cancelled_write_bytes: 512\n";

ProcessMetrics read(std::string_view status, std::string_view io) {
  ProcessMetrics m;
  parse_status(status, m);
  parse_io(io, m);
  return m;
}

// Lane -> key -> value as the lines have them.
using Shown = std::map<std::string, std::map<std::string, double>>;
template <typename Reading>
Shown shown(const Reading* before, const Reading& now) {
  Shown all;
  each_lane(before, now, "", [&](const Counter& c) {
    std::map<std::string, double> values;
    const std::string_view name = each_value(
        c, [&](std::string_view key, double value) { values[std::string(key)] = value; });
    all[std::string(name)] = values;
  });
  return all;
}

}  // namespace

TEST_CASE("a reading of the process has the numbers of its files") {
  const ProcessMetrics m = read(kStatus, kIo);
  CHECK(m.resident == 1728 * kKiB);
  CHECK(m.file == 1616 * kKiB);
  CHECK(m.threads == 17);
  CHECK(m.read_bytes == 4096);
  CHECK(m.written_bytes == 33554432);
}

TEST_CASE("what a system does not tell of a process is not known") {
  const ProcessMetrics m = read("", "");
  const auto first = &ProcessMetrics::resident;
  for (const auto number : {first, &ProcessMetrics::file, &ProcessMetrics::threads,
                            &ProcessMetrics::read_bytes, &ProcessMetrics::written_bytes}) {
    CHECK(m.*number == kNotRead);
  }
}

TEST_CASE("lanes show levels as they are, what grows in a second, and shares with a decimal") {
  ProcessMetrics before;
  before.at_ns = 10'000'000'000;
  before.user_ns = 1'000'000'000;
  before.system_ns = 0;
  before.read_bytes = 100;
  before.written_bytes = 5000;
  ProcessMetrics now = before;
  now.at_ns += 2'000'000'000;
  now.user_ns += 3'000'000'000;
  now.system_ns += 1'234'567;
  now.read_bytes += 3;
  now.written_bytes = 10;  // not of the same process
  now.threads = 4;
  now.resident = 1 << 30;
  const Shown first = {{"process memory, bytes", {{"resident", 1 << 30}}},
                       {"process threads", {{"threads", 4}}}};
  CHECK(shown<ProcessMetrics>(nullptr, now) == first);
  Shown then = first;
  then["process CPU, % of a core"] = {{"user", 150}, {"system", 0.1}};
  then["process disk, bytes/s"] = {{"read", 2}};  // 1.5
  CHECK(shown(&before, now) == then);

  HostMetrics host;
  host.at_ns = before.at_ns;
  host.busy_ticks = 1000;
  host.all_ticks = 4000;
  host.disks_read = 512;
  host.disks_written = 0;
  HostMetrics later = host;
  later.at_ns = now.at_ns;
  later.busy_ticks += 333;
  later.all_ticks += 1000;
  later.disks_read = kNotRead;
  later.disks_written = 1 << 20;
  const Shown of_host = {{"host CPU, %", {{"busy", 33.3}}},
                         {"host disks, bytes/s", {{"written", 1 << 19}}}};
  CHECK(shown(&host, later) == of_host);
}
