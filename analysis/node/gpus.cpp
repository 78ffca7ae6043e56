#include "node/gpus.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "node/nvml.h"

namespace tprof::node {
namespace {

struct Gpus {
  Nvml nvml;
  int to;
  std::uint64_t every_ns;
  std::uint64_t first_ns;
};
constinit Gpus g_gpus{};

// A reading fits into PIPE_BUF, so it is written whole.
bool tell(std::uint32_t device) {
  GpuReading reading{device, {}};
  g_gpus.nvml.read(device, reading.metrics);
  return reading.metrics.at_ns == kNotRead ||
         write(g_gpus.to, &reading, sizeof reading) == sizeof reading;
}

void sleep_until(std::uint64_t ns) {
  for (std::uint64_t now = now_ns(); now < ns; now = now_ns()) {
    poll(nullptr, 0, static_cast<int>((ns - now) / 1'000'000 + 1));
  }
}

void* run(void*) {
  become_background("tprof-gpus");
  const char* const why_not = g_gpus.nvml.load();
  if (why_not != nullptr) say("TPROF_METRICS: no lanes of GPUs: ", why_not);
  bool well = why_not == nullptr;
  for (std::uint64_t next = g_gpus.first_ns; well;) {
    sleep_until(next);
    for (std::uint32_t i = 0; i < g_gpus.nvml.devices() && well; ++i) well = tell(i);
    next = std::max(next + g_gpus.every_ns, now_ns());
  }
  close(g_gpus.to);
  return nullptr;
}

}  // namespace

int begin_gpus(std::uint64_t every_ns, std::uint64_t first_ns) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  g_gpus.to = ends[1];
  g_gpus.every_ns = every_ns;
  g_gpus.first_ns = first_ns;
  return start_background_thread(run) ? ends[0] : -1;
}

}  // namespace tprof::node
