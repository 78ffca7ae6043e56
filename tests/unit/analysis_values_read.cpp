// For how long a host may have waited behind values before each collective.
#include "catch2.h"
#include "diagnose/values_read.h"

using namespace tprof;

namespace {

using Values = diagnose::ValuesRead<int>;

read::Event call(std::int64_t ts_ns, Bucket bucket, std::int64_t thread, std::uint64_t bytes) {
  read::Event e;
  e.ts_ns = ts_ns;
  e.bucket = bucket;
  e.thread = thread;
  e.bytes = bytes;
  return e;
}

struct OneRank {
  std::map<int, std::int64_t> waited{};  // by the collective's number
  Values::Since since{};
  Values values{[this](int number, std::int64_t ns) { waited[number] = ns; }};

  void collective(std::int64_t ts_ns, std::int64_t thread, int number, bool asks = true) {
    values.see(call(ts_ns, Bucket::ALLREDUCE, thread, 8));
    values.collective(ts_ns, asks ? &since : nullptr, number);
  }
  void copy(std::int64_t ts_ns, std::int64_t thread = 1, std::uint64_t bytes = 4) {
    values.see(call(ts_ns, Bucket::D2H, thread, bytes));
  }
  void batch(std::int64_t ts_ns) { values.see(call(ts_ns, Bucket::H2D, 1, 1000)); }
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
  r.values.end();
  CHECK(r.waited == std::map<int, std::int64_t>{{0, 0}, {1, 30}, {2, 20}, {3, 0}, {4, 0}, {5, 10}});
}

TEST_CASE("lines of threads that come in blocks are put in the order of time") {
  OneRank r;
  r.copy(20);
  r.batch(50);
  r.copy(200);
  r.batch(240);
  r.collective(60, 2, 1);
  r.collective(260, 2, 2);
  r.values.end();
  CHECK(r.waited == std::map<int, std::int64_t>{{1, 30}, {2, 40}});
}

TEST_CASE("more than fits is handed on, and a checkpoint is no value") {
  OneRank r;
  constexpr int kMany = 20'000;
  for (int n = 0; n < kMany; ++n) {
    r.copy(100 * n, 1, n % 2 == 0 ? 4 : 1U << 20);
    r.collective(100 * n + 30, 1, n);
  }
  r.values.end();
  REQUIRE(r.waited.size() == kMany);
  for (const auto& [n, ns] : r.waited) CHECK(ns == (n % 2 == 0 ? 30 : 0));
}
