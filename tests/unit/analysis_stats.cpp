// stats/: what ledgers and lines add up to.
#include "analysis_traces.h"
#include "catch2.h"
#include "read/load.h"
#include "tables/totals.h"

using namespace tprof;
using namespace tprof::test;

namespace {

std::string gather(int seq, std::string_view dtype, int count, std::string_view extra = "") {
  return R"({"name":"ncclAllGather","cat":"ALLGATHER","ph":"X","pid":0,"tid":7,"ts":1.000,)"
         R"("dur":2.000,"args":{"comm":1,"seq":)" +
         std::to_string(seq) + std::string(extra) + R"(,"count":)" + std::to_string(count) +
         R"(,"dtype":")" + std::string(dtype) + R"(","bytes":)" +
         std::to_string(count * 2 * (dtype == "int64" ? 8 : 1)) + "}},\n";
}

std::optional<read::Amounts> objects_of(std::string_view lines) {
  const Folder folder;
  const auto file = folder.write(
      "r.json", "[\n" + header() + comm(1, "aa") + std::string(lines) + ledger("") + footer());
  read::Traces traces;
  traces.traces.push_back(read::load(file));
  const job::Job job = job::jobs_of({&traces.traces[0].processes[0]}).at(0);
  return tables::object_gathers(run::Lines(job, traces));
}

}  // namespace

TEST_CASE("executed is direct and replayed; what was only captured is in no total") {
  const Folder folder;
  const auto file = folder.write(
      "r.json", "[\n" + header() + comm(1, "aa") +
                    ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 3) + "," +
                           row("ALLGATHER", "ncclAllGather", "1", "captured", 100) + "," +
                           row("ALLGATHER", "ncclAllGather", "1", "replayed", 20) + "," +
                           row("H2D", "cudaMemcpyAsync", "null", "direct", 4)) +
                    footer());
  const read::Trace trace = read::load(file);
  const tables::Buckets totals = tables::bucket_totals(trace.processes[0]);
  CHECK(totals[static_cast<std::size_t>(Bucket::ALLGATHER)].calls == 23);
  CHECK(totals[static_cast<std::size_t>(Bucket::H2D)].calls == 4);
  CHECK(tables::sum(totals).calls == 27);

  tables::Ops ops;
  tables::add_ops(ops, trace.processes[0]);
  REQUIRE(ops.size() == 2);
  CHECK(ops.begin()->first.comm_id == "aa");
  CHECK(ops.begin()->second.calls == 23);
}

TEST_CASE("bandwidths are those of nccl-tests, and only where the device was timed") {
  read::Amounts a;
  a.calls = 2;
  a.bytes = 8000;
  a.host_ns = 10;
  tables::OpKey key{Bucket::ALLREDUCE, "ncclAllReduce", "float32", "aa", 4, 12};
  CHECK_FALSE(tables::algbw(a));
  a.device_ns = 1000;
  a.device_timed = 1;  // one of the two
  a.device_bytes = 4000;
  CHECK(*tables::algbw(a) == Approx(4.0));
  a.device_timed = 2;
  a.device_bytes = 8000;
  CHECK(*tables::algbw(a) == Approx(8.0));
  CHECK(*tables::busbw(key, a) == Approx(8.0 * 2 * 3 / 4));
  key.bucket = Bucket::RESHARDING;
  CHECK(*tables::busbw(key, a) == Approx(8.0 * 3 / 4));
  key.bucket = Bucket::BROADCAST;
  CHECK(*tables::busbw(key, a) == Approx(8.0));
  key.bucket = Bucket::H2D;
  CHECK_FALSE(tables::busbw(key, a));
}

TEST_CASE("an object gather is one int64, then bytes, next to each other on one communicator") {
  CHECK(objects_of(gather(0, "int64", 1) + gather(1, "uint8", 50))->calls == 2);
  CHECK(objects_of(gather(0, "int64", 1) + gather(1, "uint8", 50))->bytes == 16 + 100);
  // The lines of two threads may come in any order.
  CHECK(objects_of(gather(1, "uint8", 50) + gather(0, "int64", 1))->calls == 2);
  CHECK(objects_of(gather(0, "int64", 1) + gather(2, "uint8", 50))->calls == 0);
  CHECK(objects_of(gather(0, "int64", 2) + gather(1, "uint8", 50))->calls == 0);
  CHECK(objects_of(gather(0, "int64", 1) + gather(1, "float32", 50))->calls == 0);
  CHECK(objects_of(gather(0, "int64", 1, R"(,"captured":true)") + gather(1, "uint8", 50))->calls ==
        0);
  CHECK(objects_of(gather(0, "int64", 1, R"(,"result":5)") + gather(1, "uint8", 50))->calls == 0);
}

TEST_CASE(
    "calls of a non-blocking communicator, which are in progress (7), are gathers of objects") {
  constexpr std::string_view kInProgress = R"(,"result":7)";
  const auto both = gather(0, "int64", 1, kInProgress) + gather(1, "uint8", 50, kInProgress);
  CHECK(objects_of(both)->calls == 2);
  CHECK(objects_of(both)->bytes == 16 + 100);
}
