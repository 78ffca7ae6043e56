// For how long a host may have waited behind values before each collective.
#include "catch2.h"
#include "check/values_read.h"

using namespace tprof;

namespace {

using Waited = std::map<std::size_t, std::int64_t>;  // by the collective's number

read::Event call(std::int64_t ts_ns, Bucket bucket, std::int64_t thread, std::uint64_t bytes) {
  read::Event e;
  e.ts_ns = ts_ns;
  e.bucket = bucket;
  e.thread = thread;
  e.bytes = bytes;
  return e;
}

struct OneRank {
  check::ValuesRead values{};

  void collective(std::int64_t ts_ns, std::int64_t thread, std::size_t number, bool asks = true) {
    values.see(call(ts_ns, Bucket::ALLREDUCE, thread, 8));
    values.collective(ts_ns, asks ? 1 : check::ValuesRead::kNobody, number);
  }
  void copy(std::int64_t ts_ns, std::int64_t thread = 1, std::uint64_t bytes = 4) {
    values.see(call(ts_ns, Bucket::D2H, thread, bytes));
  }
  void batch(std::int64_t ts_ns) { values.see(call(ts_ns, Bucket::H2D, 1, 1000)); }
  Waited waited() {
    Waited all;
    values.each([&](std::int64_t, std::size_t number, std::int64_t ns) { all[number] = ns; });
    return all;
  }
};

}  // namespace

TEST_CASE("a wait behind a value ends with the next call of its thread, or a collective") {
  OneRank r;
  r.collective(10, 1, 0);
  r.copy(20);
  r.batch(50);
  r.collective(60, 1, 1);  // waited 30
  r.copy(70);
  r.copy(75);
  r.collective(90, 2, 2);  // 20, on another thread
  r.collective(95, 2, 3);
  r.copy(100);
  r.collective(110, 1, 4, false);  // a broadcast, which nobody asks about
  r.collective(130, 1, 5);         // 10
  CHECK(r.waited() == Waited{{1, 30}, {2, 20}, {5, 10}});
}

TEST_CASE("lines of threads that come in blocks are put in the order of time") {
  OneRank r;
  r.copy(20);
  r.batch(50);
  r.copy(200);
  r.batch(240);
  r.collective(60, 2, 1);
  r.collective(260, 2, 2);
  CHECK(r.waited() == Waited{{1, 30}, {2, 40}});
}

TEST_CASE("a checkpoint is no value") {
  OneRank r;
  r.copy(0, 1, 1U << 20);
  r.collective(30, 1, 0);
  r.copy(100);
  r.collective(130, 1, 1);
  CHECK(r.waited() == Waited{{1, 30}});
}
