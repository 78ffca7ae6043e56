// Measures what a call costs its thread in a program that does other work between its calls: at a
// steady rate, with caches that hold other data, on null libraries.
//
//   bench_paced CALLS_PER_SECOND SECONDS
//
// Every other call is the floor's, so that what disturbs the machine disturbs both. Prints JSON:
// {variant: [p50, p99, p99.9, p99.99, longest]}, in ns. Calls during which the thread was preempted
// are left out, since that is the machine's load. Calls that blocked are kept.
#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "variants.h"

namespace {

using namespace tprof::bench;

constexpr Variant kCompared[] = {Variant::floor, Variant::all_gather};

// Touches more memory than a core's own caches hold.
class OtherWork {
 public:
  OtherWork() : data_(kBytes, 1) {}
  void until(std::uint64_t ns) {
    while (clock_ns(CLOCK_MONOTONIC) < ns) {
      for (int i = 0; i < 64; ++i) {
        ++data_[next_];
        next_ = (next_ + 64) % kBytes;
      }
    }
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  std::vector<char> data_;
  std::size_t next_ = 0;
};

std::int64_t preemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

void print(const char* separator, Variant variant, std::vector<std::uint64_t>& ns) {
  std::ranges::sort(ns);
  const std::size_t n = ns.size();
  if (n == 0) std::exit(1);
  std::printf("%s\"%s\":[", separator, kVariantNames[static_cast<std::size_t>(variant)]);
  for (const std::size_t beyond : {n / 2, n / 100, n / 1000, n / 10000}) {
    std::printf("%lu,", ns[n - 1 - beyond]);
  }
  std::printf("%lu]", ns[n - 1]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: see the head of %s\n", __FILE__);
    return 2;
  }
  const std::uint64_t rate = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t calls = rate * std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t pace_ns = 1'000'000'000 / rate / std::size(kCompared);
  Caller caller(new_communicator());
  OtherWork other;
  std::vector<std::uint64_t> ns[std::size(kCompared)];
  for (auto& of_variant : ns) of_variant.reserve(calls);
  std::uint64_t next = clock_ns(CLOCK_MONOTONIC);
  for (std::uint64_t i = 0; i < calls * std::size(kCompared); ++i) {
    const std::size_t v = i % std::size(kCompared);
    next = std::max(next + pace_ns, clock_ns(CLOCK_MONOTONIC));
    other.until(next);
    const std::int64_t before = preemptions();
    const std::uint64_t start = clock_ns(CLOCK_MONOTONIC);
    caller.calls(kCompared[v], 1);
    const std::uint64_t took = clock_ns(CLOCK_MONOTONIC) - start;
    if (preemptions() == before) ns[v].push_back(took);
  }
  for (std::size_t v = 0; v < std::size(kCompared); ++v) {
    print(v == 0 ? "{" : ",", kCompared[v], ns[v]);
  }
  std::printf("}\n");
}
