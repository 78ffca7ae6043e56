// An hour of FSDP2 training in some seconds: one rank of 8, a model of 8 billion parameters, 7,200
// steps. The clock is simulated, since a line's length depends on its times, too.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "ring_watch.h"
#include "variants.h"

namespace {

constexpr int kSteps = 7'200;
constexpr int kBlocks = 32;
constexpr int kRanks = 8;
constexpr std::size_t kBlockShard = 218'112'000 / kRanks;
constexpr std::size_t kRootShard = 1'050'677'248 / kRanks;
constexpr std::uint64_t kStepNs = 500'000'000;
constexpr std::uint64_t kCallsPerStep = 5 + 5 * kBlocks;

std::atomic<std::uint64_t> g_now_ns{1'000'000'000'000};
std::atomic<std::uint64_t> g_random{1};

std::uint64_t random_below(std::uint64_t n) {
  const std::uint64_t x = g_random.load(std::memory_order_relaxed) * 6364136223846793005U + 1;
  g_random.store(x, std::memory_order_relaxed);
  return (x >> 33) % n;
}

// Passes the time between two calls of the program.
void compute() {
  const std::uint64_t mean = kStepNs / kCallsPerStep;
  g_now_ns.fetch_add(mean / 2 + random_below(mean), std::memory_order_relaxed);
}

}  // namespace

// A call of the program takes 4 to 20 us, because its second clock read is that much later.
extern "C" int clock_gettime(clockid_t clock, timespec* t) noexcept {
  if (clock != CLOCK_MONOTONIC) return static_cast<int>(syscall(SYS_clock_gettime, clock, t));
  const std::uint64_t passed = getpid() == gettid() ? 4'000 + random_below(16'000) : 0;
  const std::uint64_t now = g_now_ns.fetch_add(passed, std::memory_order_relaxed) + passed;
  t->tv_sec = static_cast<time_t>(now / 1'000'000'000);
  t->tv_nsec = static_cast<long>(now % 1'000'000'000);
  return 0;
}

int main() {
  ncclComm_t comm = tprof::bench::new_communicator();
  auto* const gather_stream = reinterpret_cast<cudaStream_t>(0x55d0c8a3b6f0);
  auto* const reduce_stream = reinterpret_cast<cudaStream_t>(0x55d0c8a3c140);
  auto* const device = reinterpret_cast<char*>(0x7f8a40000000);
  void* memory = nullptr;
  if (cudaHostAlloc(&memory, 65536, cudaHostAllocDefault) != cudaSuccess) return 1;

  // FSDP2 gathers in place, reduces in float32, and sends a table of pointers with each.
  const auto table = [&](std::size_t bytes) {
    compute();
    cudaMemcpyAsync(device, memory, bytes, cudaMemcpyHostToDevice, gather_stream);
  };
  const auto gather = [&](std::size_t shard) {
    compute();
    ncclAllGather(device + 3 * shard * 2, device, shard, ncclBfloat16, comm, gather_stream);
  };
  const auto reduce = [&](std::size_t shard) {
    compute();
    ncclReduceScatter(device, device + (std::size_t{1} << 32), shard, ncclFloat32, ncclAvg, comm,
                      reduce_stream);
  };

  tprof::bench::RingWatch watch;
  for (int step = 0; step < kSteps; ++step) {
    table(65536);
    gather(kRootShard);
    for (int block = 0; block < kBlocks; ++block) {
      gather(kBlockShard);
      table(408);
    }
    for (int block = 0; block < kBlocks; ++block) {
      gather(kBlockShard);
      reduce(kBlockShard);
      table(480);
    }
    reduce(kRootShard);
    table(288);
    compute();
    cudaMemcpyAsync(memory, device, 4, cudaMemcpyDeviceToHost, nullptr);
    if (step == 0) watch.open();
    if (step % 50 == 49) watch.wait_until_drained();
  }
}
