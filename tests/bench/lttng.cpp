// Measures LTTng-UST with the same 64 bytes, around the same call and in the same process as ours.
//
//   bench_lttng REPETITIONS
//
// Prints JSON: {"floor": [CPU ns per call, one per repetition], "ncclAllGather": [...], "lttng":
// [...], "lttng alone": [...], "tracepoints": how many were passed}. A batch is half of our ring,
// and starts once our writer has emptied it. LTTng's buffers hold many times as much.
#include <vector>

#include "lttng_call.h"
#include "ring_watch.h"
#include "variants.h"

namespace {

using namespace tprof::bench;

constexpr std::uint64_t kBatch = 8192;

enum class Way { floor, ours, lttng, lttng_alone };
constexpr Way kWays[] = {Way::floor, Way::ours, Way::lttng, Way::lttng_alone};
constexpr const char* kNames[] = {"floor", "ncclAllGather", "lttng", "lttng alone"};

class Calls {
 public:
  Calls() {
    caller_.calls(Variant::all_gather, 1);
    watch_.open();
    if (!watch_.tracing()) std::exit(2);
  }

  double cpu_ns(Way way) {
    watch_.wait_until_drained();
    const std::uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    make(way);
    return static_cast<double>(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) /
           static_cast<double>(kBatch);
  }

  std::uint64_t tracepoints() const { return tracepoints_; }

 private:
  // Makes the calls one by one, so that the loop costs all ways the same.
  void make(Way way) {
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      switch (way) {
        case Way::floor:
          caller_.calls(Variant::floor, 1);
          break;
        case Way::ours:
          caller_.calls(Variant::all_gather, 1);
          break;
        case Way::lttng: {
          // The record is like ours: when the call began and how long it took.
          record_[0] = clock_ns(CLOCK_MONOTONIC);
          caller_.calls(Variant::bare_all_gather, 1);
          record_[1] = clock_ns(CLOCK_MONOTONIC) - record_[0];
          trace();
          break;
        }
        case Way::lttng_alone:
          // Only LTTng's own time stamp is taken.
          caller_.calls(Variant::bare_all_gather, 1);
          trace();
          break;
      }
    }
  }

  void trace() {
    lttng_ust_tracepoint(tprof_bench, call, reinterpret_cast<const std::uint8_t*>(record_));
    ++tracepoints_;
  }

  Caller caller_{new_communicator()};
  RingWatch watch_;
  std::uint64_t record_[8] = {};
  std::uint64_t tracepoints_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t repetitions = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  Calls calls;
  for (int i = 0; i < 2; ++i) {
    for (const Way way : kWays) calls.cpu_ns(way);
  }
  std::vector<double> ns[std::size(kWays)];
  for (std::size_t r = 0; r < repetitions; ++r) {
    for (std::size_t i = 0; i < std::size(kWays); ++i) {
      const std::size_t way = (i + r) % std::size(kWays);
      ns[way].push_back(calls.cpu_ns(kWays[way]));
    }
  }
  for (std::size_t way = 0; way < std::size(kWays); ++way) {
    std::printf("%s\"%s\":[", way == 0 ? "{" : "],\n", kNames[way]);
    for (const double& value : ns[way]) {
      std::printf("%s%.2f", &value == ns[way].data() ? "" : ",", value);
    }
  }
  std::printf("],\n\"tracepoints\":%lu}\n", calls.tracepoints());
}
