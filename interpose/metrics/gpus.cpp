#include "interpose/metrics/gpus.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/lock.h"
#include "interpose/metrics/nvml.h"

namespace tprof::metrics::gpus {
namespace {

constexpr std::uint32_t kLastMs = 200;  // for a call to return

constinit Nvml g_nvml;
constinit bool g_begun = false;  // also true if the parent began
std::uint64_t g_every_ns = 0;

constinit Lock g_lock{LockOrder::gpus};  // for g_newest
constinit GpuMetrics g_newest[kMostGpus];

std::atomic<std::uint32_t> g_inside{0};  // futex: NVML is being called
std::atomic<std::uint32_t> g_ended{0};   // futex

// False: NVML must not be called any more. Each side writes its word before it reads the other's.
bool enter() {
  g_inside.store(1);
  return g_ended.load() == 0;
}
void leave() {
  g_inside.store(0);
  futex_wake(g_inside);
}

void read_all() {
  for (std::uint32_t i = 0; i < g_nvml.devices() && g_ended.load() == 0; ++i) {
    GpuMetrics m;
    g_nvml.read(i, m);
    const LockGuard guard(g_lock);
    g_newest[i] = m;
  }
}

// Exit handlers run in reverse order: ours is registered after NVML's, and so runs first.
bool load() {
  const bool may = enter();
  const char* why = may ? g_nvml.load() : nullptr;
  if (may) std::atexit([] { end(); });
  leave();
  if (why != nullptr) say("TPROF_METRICS: no lanes of GPUs: ", why);
  return may && why == nullptr;
}

void* run(void*) {
  become_background("tprof-gpus");
  if (!load()) return nullptr;
  for (std::uint64_t next = now_ns(); enter();) {
    read_all();
    leave();
    const std::uint64_t now = now_ns();
    next = std::max(next + g_every_ns, now);
    const std::uint64_t pause_ms = (next - now) / 1'000'000 + 1;
    futex_wait(g_ended, 0, static_cast<std::uint32_t>(pause_ms));
  }
  leave();
  return nullptr;
}

}  // namespace

void begin(std::uint64_t every_ns) {
  if (g_begun) return;
  g_begun = true;
  g_every_ns = every_ns;
  start_background_thread(run);
}

bool newest(std::uint32_t device, GpuMetrics& to) {
  if (device >= kMostGpus) return false;
  const LockGuard guard(g_lock);
  to = g_newest[device];
  return to.at_ns != kNotRead;
}

void end() {
  if (!g_begun) return;
  const std::uint64_t until = now_ns() + std::uint64_t{kLastMs} * 1'000'000;
  g_ended.store(1);
  futex_wake(g_ended);
  constexpr std::uint32_t kSoonMs = 10;
  while (g_inside.load() != 0 && now_ns() < until) futex_wait(g_inside, 1, kSoonMs);
}

void after_fork() {
  g_inside.store(0);  // the thread that was inside is the parent's
  std::fill(std::begin(g_newest), std::end(g_newest), GpuMetrics{});
}

}  // namespace tprof::metrics::gpus
