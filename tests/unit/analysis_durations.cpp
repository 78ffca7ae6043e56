// stats/: how durations are spread out, and which device time is which call's.

#include "catch2.h"
#include "run/timed_calls.h"
#include "tables/durations.h"

using namespace tprof;
using namespace tprof::tables;

namespace {

read::Event call(std::int64_t ts_ns, std::int64_t thread = 7) {
  read::Event e;
  e.name = "ncclAllGather";
  e.ts_ns = ts_ns;
  e.thread = thread;
  return e;
}

read::DeviceTime time_of(const read::Event& e, std::int64_t queued_ns) {
  read::DeviceTime t;
  t.name = e.name;
  t.ts_ns = e.ts_ns + queued_ns;
  t.queued_ns = queued_ns;
  t.thread = e.thread;
  return t;
}

}  // namespace

TEST_CASE("edges are whole nanoseconds, each once") {
  using Edges = std::vector<std::uint64_t>;
  CHECK(edges(0, 100, 4, false) == Edges{0, 25, 50, 75, 100});
  CHECK(edges(10, 10'000, 3, true) == Edges{10, 100, 1000, 10'000});
  CHECK(edges(0, 1000, 3, true) == Edges{0, 10, 100, 1000});
  CHECK(edges(5, 7, 20, false) == Edges{5, 6, 7});
  CHECK(edges(5, 5, 20, false) == Edges{5, 5});
}

TEST_CASE("a time finds its call, whichever line comes first, and no other's") {
  std::map<std::int64_t, std::int64_t> queued;  // by the call's ts; -1: no time
  run::TimedCalls calls(true, [&](const read::Event& e, const read::DeviceTime* t) {
    queued[e.ts_ns * 10 + e.thread] = t == nullptr ? -1 : t->queued_ns;
  });
  calls.call(call(100));
  calls.call(call(100, 8));  // on another thread at the same moment
  calls.time(time_of(call(200), 20));
  calls.time(time_of(call(100, 8), 30));
  read::DeviceTime other = time_of(call(100), 40);
  other.name = "ncclReduceScatter";
  calls.time(other);
  calls.call(call(200));
  calls.finish();
  CHECK(queued == std::map<std::int64_t, std::int64_t>{{1007, -1}, {1008, 30}, {2007, 20}});
}

TEST_CASE("calls whose time does not come are let go, the oldest first") {
  std::size_t without = 0;
  run::TimedCalls calls(true, [&](const read::Event&, const read::DeviceTime* t) {
    REQUIRE(t == nullptr);
    ++without;
  });
  const auto most = static_cast<std::int64_t>(run::TimedCalls::kMostWaiting);
  for (std::int64_t ts = 0; ts < most + 10; ++ts) calls.call(call(ts));
  CHECK(without == 10);
  calls.finish();
  CHECK(without == run::TimedCalls::kMostWaiting + 10);
}
