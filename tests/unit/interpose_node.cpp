// node/: what is read of a host from planted files.
#include <filesystem>
#include <memory>
#include <string>

#include "catch2.h"
#include "node/host.h"
#include "planted_root.h"

using namespace tprof;
using namespace tprof::node;
using namespace tprof::test;

namespace {

constexpr std::uint64_t kPerKiB = 1024;

HostMetrics read_host(const Root& root) {
  HostMetrics m;
  std::make_unique<Host>(root.folder.c_str())->read(m);
  return m;
}

void plant_host(const Root& root) {
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

}  // namespace

TEST_CASE("a reading has the planted numbers, whole devices once each, and ports in bytes") {
  const Root root;
  plant_host(root);
  for (const char* name : {"eth0", "ens1f1"}) {
    root.plant(std::string("/sys/class/net/") + name + "/device/vendor", "");
  }
  const HostMetrics m = read_host(root);
  CHECK(m.all_ticks == 100 + 20 + 30 + 1000 + 50 + 1 + 2 + 3);
  CHECK(m.busy_ticks == 100 + 20 + 30 + 1 + 2 + 3);
  CHECK(m.available == 22228508 * kPerKiB);
  CHECK(m.cached == 5255192 * kPerKiB);
  CHECK(m.dirty == 340 * kPerKiB);
  CHECK(m.disks_read == (1331 + 70) * 512);
  CHECK(m.disks_written == (3574 + 8) * 512);
  CHECK(m.network_received == 3000 + 40000);
  CHECK(m.network_sent == 200 + 7000);
  CHECK(m.infiniband_received == 2 * 1000000 * 4);
  CHECK(m.infiniband_sent == 511 * 4);
}

TEST_CASE("where no interface is a device, as in a container, all but lo count") {
  const Root root;
  plant_host(root);
  const HostMetrics m = read_host(root);
  CHECK(m.network_received == 3000 + 40000 + 43000);
  CHECK(m.network_sent == 200 + 7000 + 7200);
}

TEST_CASE("which interfaces count is what it was at the first reading") {
  const Root root;
  plant_host(root);
  root.plant("/sys/class/net/eth0/device/vendor", "");
  const auto host = std::make_unique<Host>(root.folder.c_str());
  HostMetrics m;
  host->read(m);
  CHECK(m.network_received == 3000);
  std::filesystem::remove_all(root.folder + "/sys/class/net/eth0");
  host->read(m);
  CHECK(m.network_received == kNotRead);
}

TEST_CASE("what a system does not tell of a host is not known") {
  const Root empty;
  HostMetrics m = read_host(empty);
  const auto first = &HostMetrics::busy_ticks;
  for (const auto number :
       {first, &HostMetrics::available, &HostMetrics::cached, &HostMetrics::dirty,
        &HostMetrics::disks_read, &HostMetrics::network_sent, &HostMetrics::infiniband_sent}) {
    CHECK(m.*number == kNotRead);
  }
  const Root root;
  plant_host(root);
  root.plant("/proc/meminfo", "MemTotal: 1 kB\nCached: many kB\nDirty: 99999999999999999999 kB\n");
  root.plant("/proc/stat", "cpu  100 20 30\n");
  root.plant("/sys/class/infiniband/mlx5_1/ports/1/counters/port_rcv_data", "");
  root.plant("/proc/diskstats", " 254 0 vda 259 21\n");
  m = read_host(root);
  for (const auto number : {&HostMetrics::available, &HostMetrics::cached, &HostMetrics::dirty,
                            &HostMetrics::busy_ticks, &HostMetrics::infiniband_received,
                            &HostMetrics::disks_read, &HostMetrics::disks_written}) {
    CHECK(m.*number == kNotRead);
  }
  CHECK(m.infiniband_sent == 511 * 4);
}
