// metrics/: what is read from planted files, and what lines show of two readings.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "catch2.h"
#include "interpose/emit/output.h"
#include "interpose/metrics/sources.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::metrics;
using namespace tprof::test;

namespace {

constexpr std::uint64_t kKiB = 1024;

// A root folder with files of /proc and /sys.
class Root {
 public:
  Root() { std::filesystem::create_directories(folder); }
  ~Root() { std::filesystem::remove_all(folder); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void plant(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((folder + path).substr(0, (folder + path).rfind('/')));
    std::ofstream(folder + path) << text;
  }
  // Returns what the reader finds there.
  Metrics read(bool host = true) const {
    const auto sources = std::make_unique<Sources>();
    sources->open(folder.c_str(), host);
    Metrics m;
    sources->read(m);
    sources->close();
    return m;
  }

  std::string folder =
      mkdtemp((std::filesystem::temp_directory_path() / "tprof-metrics-XXXXXX").string().data());
};

void plant_all(const Root& root) {
  root.plant("/proc/self/status",
             "Name:\tThreads: 99\nVmHWM:\t   9000 kB\nVmRSS:\t    1728 kB\nRssAnon:\t     112 kB\n"
             "RssFile:\t    1616 kB\nThreads:\t17\nvoluntary_ctxt_switches:\t0\n");
  root.plant("/proc/self/io",
             "rchar: 6976\nwchar: 11\nread_bytes: 4096\nwrite_bytes: 33554432\n"
             "cancelled_write_bytes: 512\n");
  // The first two numbers already contain the guests' time (7 and 9).
  root.plant(
      "/proc/stat",
      "cpu  100 20 30 1000 50 1 2 3 7 9\ncpu0 100 20 30 1000 50 1 2 3 7 9\nintr 12345 1 2\n");
  root.plant(
      "/proc/meminfo",
      "MemTotal:       24684084 kB\nMemFree:        16920500 kB\n"
      "MemAvailable:   22228508 kB\nBuffers:           53804 kB\n"
      "Cached:          5255192 kB\nSwapCached:            7 kB\nDirty:               340 kB\n");
  root.plant(
      "/proc/diskstats",
      "   7       0 loop0 1 0 1000000 0 1 0 1000000 0 0 0 0\n"
      " 254       0 vda 259 21 1331 103 176 137 3574 26 0 130 133 1856 200 5564 3607 27 15\n"
      " 254       1 vda1 250 21 1300 103 170 137 3500 26 0 130 133 1856 200 5564 3607 27 15\n"
      " 259       0 nvme0n1 1 0 70 0 1 0 8 0 0 0 0\n"
      " 259       2 nvme0c0n1 1 0 70 0 1 0 8 0 0 0 0\n"
      " 253       0 dm-0 259 21 1331 103 176 137 3574 26 0 130 133\n");
  root.plant("/sys/block/vda/device/vendor", "");
  root.plant("/sys/block/nvme0n1/device/model", "");
  root.plant("/sys/block/nvme0c0n1/device/model", "");
  root.plant("/sys/block/dm-0/size", "1");
  root.plant("/proc/net/dev",
             "Inter-|   Receive                                     |  Transmit\n"
             " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
             "    lo: 45217899  630384 0 0 0 0 0 0 45217899  630384 0 0 0 0 0 0\n"
             "  eth0: 3000 64 0 0 0 0 0 0 200 41 0 0 0 0 0 0\n"
             "ens1f1:40000 64 0 0 0 0 0 0 7000 41 0 0 0 0 0 0\n"
             " bond0: 43000 128 0 0 0 0 0 0 7200 82 0 0 0 0 0 0\n");
  for (const std::string port : {"mlx5_0/ports/1", "mlx5_1/ports/1"}) {
    const std::string counters = "/sys/class/infiniband/" + port + "/counters/";
    root.plant(counters + "port_rcv_data", "1000000\n");
    root.plant(counters + "port_xmit_data", port[5] == '0' ? "500\n" : "11\n");
  }
}

// Lane -> key -> value as the lines have them.
using Shown = std::map<std::string, std::map<std::string, double>>;
Shown shown(const Metrics* before, const Metrics& now) {
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

TEST_CASE("a reading has the planted numbers, whole devices once each, and ports in bytes") {
  const Root root;
  plant_all(root);
  for (const char* name : {"eth0", "ens1f1"}) {
    root.plant(std::string("/sys/class/net/") + name + "/device/vendor", "");
  }
  const Metrics m = root.read();
  CHECK(m.resident == 1728 * kKiB);
  CHECK(m.file == 1616 * kKiB);
  CHECK(m.threads == 17);
  CHECK(m.read_bytes == 4096);
  CHECK(m.written_bytes == 33554432);
  CHECK(m.all_ticks == 100 + 20 + 30 + 1000 + 50 + 1 + 2 + 3);
  CHECK(m.busy_ticks == 100 + 20 + 30 + 1 + 2 + 3);
  CHECK(m.available == 22228508 * kKiB);
  CHECK(m.cached == 5255192 * kKiB);
  CHECK(m.dirty == 340 * kKiB);
  CHECK(m.disks_read == (1331 + 70) * 512);
  CHECK(m.disks_written == (3574 + 8) * 512);
  CHECK(m.network_received == 3000 + 40000);
  CHECK(m.network_sent == 200 + 7000);
  CHECK(m.infiniband_received == 2 * 1000000 * 4);
  CHECK(m.infiniband_sent == 511 * 4);
}

TEST_CASE("where no interface is a device, as in a container, all but lo count") {
  const Root root;
  plant_all(root);
  const Metrics m = root.read();
  CHECK(m.network_received == 3000 + 40000 + 43000);
  CHECK(m.network_sent == 200 + 7000 + 7200);
}

TEST_CASE("which interfaces count is what it was at the first reading") {
  const Root root;
  plant_all(root);
  root.plant("/sys/class/net/eth0/device/vendor", "");
  const auto sources = std::make_unique<Sources>();
  sources->open(root.folder.c_str(), true);
  Metrics m;
  sources->read(m);
  CHECK(m.network_received == 3000);
  std::filesystem::remove_all(root.folder + "/sys/class/net/eth0");
  sources->read(m);
  CHECK(m.network_received == kNotRead);
  sources->close();
}

TEST_CASE("what a system does not tell is not known, and of the host only where it was asked for") {
  const Root empty;
  Metrics m = empty.read();
  const auto first = &Metrics::resident;
  for (const auto number :
       {first, &Metrics::file, &Metrics::threads, &Metrics::read_bytes, &Metrics::written_bytes,
        &Metrics::busy_ticks, &Metrics::available, &Metrics::cached, &Metrics::dirty,
        &Metrics::disks_read, &Metrics::network_sent, &Metrics::infiniband_sent}) {
    CHECK(m.*number == kNotRead);
  }
  CHECK(m.user_ns != kNotRead);  // does not come from files
  const Root root;
  plant_all(root);
  root.plant("/proc/meminfo", "MemTotal: 1 kB\nCached: many kB\nDirty: 99999999999999999999 kB\n");
  root.plant("/proc/stat", "cpu  100 20 30\n");
  root.plant("/sys/class/infiniband/mlx5_1/ports/1/counters/port_rcv_data", "");
  root.plant("/proc/diskstats", " 254 0 vda 259 21\n");
  m = root.read();
  for (const auto number :
       {&Metrics::available, &Metrics::cached, &Metrics::dirty, &Metrics::busy_ticks,
        &Metrics::infiniband_received, &Metrics::disks_read, &Metrics::disks_written}) {
    CHECK(m.*number == kNotRead);
  }
  CHECK(m.infiniband_sent == 511 * 4);
  m = root.read(false);
  CHECK(m.resident == 1728 * kKiB);
  CHECK(m.network_sent == kNotRead);
}

TEST_CASE("a file that the program has closed tells nothing, whatever has its number now") {
  const Root root;
  plant_all(root);
  const auto sources = std::make_unique<Sources>();
  sources->open(root.folder.c_str(), true);
  root.plant("/data", "VmRSS:\t 5 kB\n");
  const int data = open((root.folder + "/data").c_str(), O_RDONLY);
  std::vector<int> taken;
  for (int fd = 3; fd < 200; ++fd) {
    char path[512] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (readlink(link.c_str(), path, sizeof path - 1) < 0) continue;
    if (std::string(path) != root.folder + "/proc/self/status") continue;
    dup2(data, fd);
    taken.push_back(fd);
  }
  REQUIRE(taken.size() == 1);
  Metrics m;
  sources->read(m);
  CHECK(m.resident == kNotRead);
  CHECK(m.read_bytes == 4096);
  sources->close();
  CHECK(fcntl(taken[0], F_GETFD) >= 0);  // it is the program's
  close(taken[0]);
  close(data);
}

TEST_CASE("lanes show levels as they are, what grows in a second, and shares with a decimal") {
  Metrics before;
  before.at_ns = 10'000'000'000;
  before.user_ns = 1'000'000'000;
  before.system_ns = 0;
  before.read_bytes = 100;
  before.written_bytes = 5000;
  before.busy_ticks = 1000;
  before.all_ticks = 4000;
  before.disks_read = 512;
  before.disks_written = 0;
  Metrics now = before;
  now.at_ns += 2'000'000'000;
  now.user_ns += 3'000'000'000;
  now.system_ns += 1'234'567;
  now.read_bytes += 3;
  now.written_bytes = 10;  // not of the same process
  now.busy_ticks += 333;
  now.all_ticks += 1000;
  now.disks_read = kNotRead;
  now.disks_written = 1 << 20;
  now.threads = 4;
  now.resident = 1 << 30;
  const Shown first = {{"process memory, bytes", {{"resident", 1 << 30}}},
                       {"process threads", {{"threads", 4}}}};
  CHECK(shown(nullptr, now) == first);
  Shown then = first;
  then["process CPU, % of a core"] = {{"user", 150}, {"system", 0.1}};
  then["process disk, bytes/s"] = {{"read", 2}};  // 1.5
  then["host CPU, %"] = {{"busy", 33.3}};
  then["host disks, bytes/s"] = {{"written", 1 << 19}};
  CHECK(shown(&before, now) == then);
}

TEST_CASE("what a metric is called is known to be no word of the program's") {
  for (const auto& lane : kMetricLanes) CHECK(is_metric_word(lane.name));
  for (const char* name : {"resident", "GPU 0 power, W", "GPU 15 NVLink, bytes/s", "kernels"}) {
    CHECK(is_metric_word(name));
  }
  for (const char* name : {"GPU 0 loss", "GPU", "GPU 3", "GPU secret power, W"}) {
    CHECK_FALSE(is_metric_word(name));
  }
  CHECK_FALSE(is_metric_word(""));
  CHECK_FALSE(is_metric_word("loss"));
}

namespace {

// A writer that reads each time it wakes.
struct Reading {
  explicit Reading(const World&, std::uint64_t quota = 0) {
    World::view().head().quota = quota;
    output = std::make_unique<Output>(World::view(), fd, 0, -1, MetricsWanted{1, false, false});
  }
  ~Reading() {
    output->leave();
    close(fd);
    unlink(path.c_str());
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // Returns the lines of a counter by its name.
  std::vector<std::string> lines(const std::string& name) const {
    std::vector<std::string> found;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (line.find("\"name\":\"" + name + "\"") != line.npos) found.push_back(line);
    }
    return found;
  }

  std::string path = (std::filesystem::temp_directory_path() / "tprof-reading-XXXXXX").string();
  int fd = mkstemp(path.data());
  std::unique_ptr<Output> output;
};

}  // namespace

TEST_CASE("what is told of now stands at the beginning, what grows from the second reading on") {
  const World world;
  const Reading reading(world);
  CHECK(reading.lines("process memory, bytes").size() == 1);
  CHECK(reading.lines("process CPU, % of a core").empty());
  reading.output->tick();
  reading.output->tick();
  CHECK(reading.lines("process memory, bytes").size() == 3);
  CHECK(reading.lines("process CPU, % of a core").size() == 2);
  CHECK(reading.lines("host memory, bytes").empty());
}

TEST_CASE("outside of windows nothing is read, and what grew between two is in neither") {
  const World world;
  copy_text(World::view().head().windows.schedule, "profiler");
  const Reading reading(world);
  Windows& windows = World::view().head().windows;
  reading.output->tick();
  CHECK(reading.lines("process memory, bytes").empty());
  for (std::size_t n = 1; n <= 2; ++n) {
    open_window(windows, now_ns(), -1);
    reading.output->tick();
    reading.output->tick();
    last_window(windows)->to_ns = now_ns();
    reading.output->tick();
    CHECK(reading.lines("process memory, bytes").size() == 2 * n);
    CHECK(reading.lines("process CPU, % of a core").size() == n);
  }
}

TEST_CASE("metrics have a quarter of the quota, and leave off behind it") {
  const World world;
  const Reading reading(world, 8000);
  for (int i = 0; i < 50; ++i) reading.output->tick();
  const auto size = static_cast<std::uint64_t>(lseek(reading.fd, 0, SEEK_END));
  CHECK(size > 1500);
  CHECK(size <= 2000);
}
