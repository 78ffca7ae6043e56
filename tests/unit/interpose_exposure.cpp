// timing/exposure.h: what was exposed of calls, for schedules whose answer is arithmetic.
#include "interpose/timing/exposure.h"

#include <map>
#include <memory>

#include "catch2.h"

using namespace tprof;
using namespace tprof::timing;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kGather = 0x1000;
constexpr std::uint64_t kCompute = 0x2000;
constexpr std::uint64_t kSide = 0x3000;
constexpr LedgerKey::Words kKey{1, 1};

// A job of which everything was enqueued before the devices began; times in ms.
class Job {
 public:
  std::uint64_t call(std::uint64_t stream, std::uint64_t start, std::uint64_t end) {
    exposure_->call({{++number_, stream, 0, start * kMs, end * kMs}, kKey, 1});
    return number_;
  }
  void wait(std::uint64_t stream, std::uint64_t call, std::uint64_t start, std::uint64_t end,
            std::uint64_t through = 0) {
    exposure_->wait({{++number_, stream, 0, start * kMs, end * kMs}, call, {through, 0, 0}});
  }
  // What a stream is shows by its work: from 0 to 1000, in one piece.
  void works(std::uint64_t stream, std::uint64_t ms) {
    exposure_->wait({{++number_, stream, 0, kMs, kMs}, 0, {}});
    exposure_->wait({{++number_, stream, 0, ms * kMs, ms * kMs}, 0, {}});
  }
  Exposed end() {
    Exposed sum{};
    exposure_->settle(true, [&](const Exposed& found) {
      sum.calls += found.calls;
      sum.waited_ns += found.waited_ns;
      sum.exposed_ns += found.exposed_ns;
      sum.late += found.late;
      sum.longest_ns = std::max(sum.longest_ns, found.longest_ns);
    });
    return sum;
  }

 private:
  std::unique_ptr<Exposure> exposure_ = std::make_unique<Exposure>();
  std::uint64_t number_ = 0;
};

}  // namespace

TEST_CASE("exposed is the part of a call in which the stream that computes stood still") {
  Job job;
  job.works(kCompute, 1000);
  const auto call = job.call(kGather, 1010, 1030);
  job.wait(kCompute, call, 1022, 1030);
  const Exposed found = job.end();
  CHECK(found.calls == 1);
  CHECK(found.waited_ns == 20 * kMs);
  CHECK(found.exposed_ns == 8 * kMs);
  CHECK(found.late == 1);
}

TEST_CASE("a wait that begins when the call is over finds nothing exposed") {
  Job job;
  job.works(kCompute, 1000);
  const auto call = job.call(kGather, 1010, 1030);
  job.wait(kCompute, call, 1040, 1040);
  const Exposed found = job.end();
  CHECK(found.calls == 1);
  CHECK(found.exposed_ns == 0);
  CHECK(found.late == 0);
}

TEST_CASE("waiting before the call begins and after it ended is not its exposed time") {
  Job job;
  job.works(kCompute, 1000);
  const auto call = job.call(kGather, 1010, 1030);
  job.wait(kCompute, call, 1001, 1050);
  CHECK(job.end().exposed_ns == 20 * kMs);
}

TEST_CASE("a side stream's wait counts nothing, whoever waits for that stream does") {
  Job job;
  job.works(kCompute, 1000);
  const auto call = job.call(kGather, 1010, 1030);
  job.wait(kSide, call, 1010, 1030);
  job.wait(kCompute, call, 1025, 1030, kSide);
  const Exposed found = job.end();
  CHECK(found.calls == 1);
  CHECK(found.exposed_ns == 5 * kMs);
}

TEST_CASE("who waits for a stream that computes waits for what it computes") {
  Job job;
  job.works(kCompute, 1000);
  job.works(kSide, 900);
  const auto call = job.call(kGather, 1010, 1030);
  job.wait(kSide, call, 1010, 1030, kCompute);
  CHECK(job.end().calls == 0);
}

TEST_CASE("a wait for a call is one for those before it on its stream, each counted once") {
  Job job;
  job.works(kCompute, 1000);
  job.call(kGather, 1010, 1020);
  const auto second = job.call(kGather, 1020, 1030);
  job.call(kGather, 1030, 1040);
  job.wait(kCompute, second, 1015, 1030);
  job.wait(kCompute, second, 1015, 1030);
  const Exposed found = job.end();
  CHECK(found.calls == 2);
  CHECK(found.waited_ns == 20 * kMs);
  CHECK(found.exposed_ns == 15 * kMs);
  CHECK(found.longest_ns == 10 * kMs);
}

TEST_CASE("a thread that waits stands still whatever the streams do") {
  Job job;
  const auto call = job.call(kGather, 1010, 1030);
  job.wait(0, call, 1013, 1030);
  CHECK(job.end().exposed_ns == 17 * kMs);
}

TEST_CASE("a stream that had nothing to do between two events did not work") {
  auto exposure = std::make_unique<Exposure>();
  exposure->call({{1, kGather, 0, 10 * kMs, 30 * kMs}, kKey, 1});
  // Its second wait was enqueued long after the first was over.
  exposure->wait({{2, kCompute, 0, kMs, kMs}, 0, {}});
  exposure->wait({{3, kCompute, 9 * kMs, 10 * kMs, 30 * kMs}, 1, {}});
  std::uint64_t found = 0;
  exposure->settle(true, [&](const Exposed& e) { found += e.calls; });
  CHECK(found == 0);
}
