// Measures what a call costs its thread, next to the floor and to the same call without tprof. All
// calls go to null libraries.
//
//   bench_hot_path THREADS REPETITIONS
//
// Measures CPU nanoseconds per call, in batches of half a ring, each after the writer has emptied
// the rings. Prints JSON: {variant: [one figure per repetition]}.
#include <barrier>
#include <thread>
#include <vector>

#include "ring_watch.h"
#include "variants.h"

namespace {

using namespace tprof::bench;

constexpr std::size_t kVariantCount = std::size(kVariants);
constexpr std::uint64_t kBatch = 8192;  // half a ring: the last call wakes the writer

void print_name(Variant variant) {
  std::printf("%s\n\"%s\":[", variant == Variant::floor ? "{" : "],",
              kVariantNames[static_cast<std::size_t>(variant)]);
}

class Cost {
 public:
  Cost(std::size_t threads, std::size_t repetitions)
      : threads_(threads),
        repetitions_(repetitions),
        barrier_(static_cast<std::ptrdiff_t>(threads)),
        cpu_ns_(threads * repetitions * kVariantCount) {}

  void run() {
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < threads_; ++i) others.emplace_back([this, i] { thread(i); });
    thread(0);
    for (std::thread& t : others) t.join();
    for (std::size_t v = 0; v < kVariantCount; ++v) {
      print_name(kVariants[v]);
      for (std::size_t r = 0; r < repetitions_; ++r) {
        double sum = 0;
        for (std::size_t t = 0; t < threads_; ++t) sum += cpu_ns(t, r, v);
        std::printf("%s%.2f", r == 0 ? "" : ",", sum / static_cast<double>(threads_));
      }
    }
    std::printf("]}\n");
  }

 private:
  double& cpu_ns(std::size_t thread, std::size_t repetition, std::size_t variant) {
    return cpu_ns_[(thread * repetitions_ + repetition) * kVariantCount + variant];
  }

  // All threads do the same at the same time.
  void meet(std::size_t thread) {
    barrier_.arrive_and_wait();
    if (thread == 0) watch_.wait_until_drained();
    barrier_.arrive_and_wait();
  }

  void thread(std::size_t index) {
    Caller caller(new_communicator());
    caller.calls(Variant::all_gather, 1);
    barrier_.arrive_and_wait();
    if (index == 0) watch_.open();
    // Warms up: touches every page of the rings and creates every row of the ledger.
    for (int i = 0; i < 2; ++i) {
      for (const Variant v : kVariants) {
        meet(index);
        caller.calls(v, kBatch);
      }
    }
    for (std::size_t r = 0; r < repetitions_; ++r) {
      for (std::size_t i = 0; i < kVariantCount; ++i) {
        const std::size_t v = (i + r) % kVariantCount;
        meet(index);
        const std::uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        caller.calls(kVariants[v], kBatch);
        const std::uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        cpu_ns(index, r, v) = static_cast<double>(end - start) / static_cast<double>(kBatch);
      }
    }
  }

  std::size_t threads_;
  std::size_t repetitions_;
  std::barrier<> barrier_;
  std::vector<double> cpu_ns_;
  RingWatch watch_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: see the head of %s\n", __FILE__);
    return 2;
  }
  Cost(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10)).run();
}
