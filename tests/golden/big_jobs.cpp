// Writes the rank files of big jobs in seconds, as the contract describes them, for benchmarks and
// tests of the tool with big input.
//
//   big_jobs DIR RANKS LINES KIND
//
// The job is one of PyTorch's FSDP2 with steps and device times, of RANKS ranks with about LINES
// lines each beside their metadata (big_fsdp.h). In the KIND fsdp_slow one rank (RANKS / 3)
// computes for 1.2 times as long, in fsdp none.
//
// Prints what a reader should find, as JSON. It shares nothing with the tool or the library, since
// it is there to test them.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/golden/big_fsdp.h"

int main(int argc, char** argv) {
  const std::string_view kind = argc == 5 ? argv[4] : "";
  if (kind != "fsdp" && kind != "fsdp_slow") {
    std::fprintf(stderr, "usage: big_jobs DIR RANKS LINES fsdp|fsdp_slow\n");
    return 2;
  }
  const int ranks = std::atoi(argv[2]);
  const tprof::test::FsdpJob job(argv[1], ranks, std::atoi(argv[3]), kind == "fsdp_slow");
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int rank = next++; rank < ranks; rank = next++) job.write(rank);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  std::printf(
      "{\"ranks\":%d,\"kind\":\"%s\",\"communicators\":%d,\"steps\":%d,\"step_ns\":%lld,"
      "\"slow_rank\":%d}\n",
      ranks, kind.data(), job.communicators(), job.steps(),
      static_cast<long long>(job.step().length_ns), job.slow_rank());
  return 0;
}
