// Measures what a call costs its thread, next to the floor and to the same call without tprof. All
// calls go to null libraries.
//
//   bench_hot_path cost THREADS REPETITIONS
//       CPU nanoseconds per call, in batches of half a ring, each after the writer has emptied the
//       rings
//   bench_hot_path tail REPETITIONS
//       nanoseconds of single calls, 100,000 per second
//
// cost prints JSON: {variant: [one figure per repetition]}. tail prints
// {variant: [[p50, p99, p99.9], ...]} and the number of samples that were left out.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <string_view>
#include <thread>
#include <vector>

#include "ring_watch.h"
#include "variants.h"

namespace {

using namespace tprof::bench;

constexpr std::size_t kVariantCount = std::size(kVariants);
// Only these have their single calls timed: the bare ones cost less than reading the clock.
constexpr Variant kTailVariants[] = {Variant::floor, Variant::all_gather, Variant::memcpy};
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

std::int64_t context_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

class Tail {
 public:
  Tail() {
    caller_.calls(Variant::all_gather, 1);
    watch_.open();
    for (int i = 0; i < 2; ++i) {
      for (const Variant v : kVariants) {
        watch_.wait_until_drained();
        caller_.calls(v, kBatch);
      }
    }
  }

  void run(std::size_t repetitions) {
    std::vector<std::array<std::uint64_t, 3>> percentiles[std::size(kTailVariants)];
    for (std::size_t r = 0; r < repetitions; ++r) {
      for (std::size_t v = 0; v < std::size(kTailVariants); ++v) {
        ns_.clear();
        for (int i = 0; i < kBatches; ++i) batch(kTailVariants[v]);
        std::ranges::sort(ns_);
        const std::size_t n = ns_.size();
        percentiles[v].push_back({ns_[n / 2], ns_[n - n / 100], ns_[n - n / 1000]});
      }
    }
    for (std::size_t v = 0; v < std::size(kTailVariants); ++v) {
      print_name(kTailVariants[v]);
      for (const auto& p : percentiles[v]) {
        std::printf("%s[%lu,%lu,%lu]", &p == &percentiles[v][0] ? "" : ",", p[0], p[1], p[2]);
      }
    }
    std::printf("],\n\"left out\":%lu}\n", left_out_);
  }

 private:
  static constexpr int kBatches = 2;
  static constexpr std::uint64_t kPaceNs = 10'000;

  // Half a ring wakes the writer: it works while calls are made.
  void batch(Variant variant) {
    watch_.wait_until_drained();
    std::uint64_t next = clock_ns(CLOCK_MONOTONIC);
    std::int64_t switches = context_switches();
    for (std::uint64_t i = 0; i < kBatch + kBatch / 2; ++i) {
      next += kPaceNs;
      while (clock_ns(CLOCK_MONOTONIC) < next) {
      }
      const std::uint64_t ns = timed_call(variant);
      // The first call after the thread was off its core finds cold caches. That is the load of the
      // machine, not the cost of a call.
      const std::int64_t now = context_switches();
      if (now == switches) {
        ns_.push_back(ns);
      } else {
        ++left_out_;
        next = clock_ns(CLOCK_MONOTONIC);
      }
      switches = now;
    }
  }

  std::uint64_t timed_call(Variant variant) {
    const std::uint64_t start = clock_ns(CLOCK_MONOTONIC);
    caller_.calls(variant, 1);
    return clock_ns(CLOCK_MONOTONIC) - start;
  }

  Caller caller_{new_communicator()};
  RingWatch watch_;
  std::vector<std::uint64_t> ns_;
  std::uint64_t left_out_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> args(argv + 1, argv + argc);
  const auto number = [&](std::size_t i) { return std::strtoull(argv[i + 1], nullptr, 10); };
  if (args.size() == 3 && args[0] == "cost") {
    Cost(number(1), number(2)).run();
    return 0;
  }
  if (args.size() == 2 && args[0] == "tail") {
    Tail().run(number(1));
    return 0;
  }
  std::fprintf(stderr, "usage: see the head of %s\n", __FILE__);
  return 2;
}
