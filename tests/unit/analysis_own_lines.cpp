// The lines that are read without simdjson: what the library writes is, and what differs is not.
#include <vector>

#include "catch2.h"
#include "read/own_lines.h"

namespace {

using tprof::Bucket;
using tprof::HostMemory;
using tprof::read::Busy;
using tprof::read::DeviceTime;
using tprof::read::Event;
namespace own_lines = tprof::read::own_lines;

const std::string kCall =
    R"({"name":"ncclReduceScatter","cat":"RESHARDING","ph":"X","pid":3,"tid":4720,"ts":1042.117,)"
    R"("dur":6.204,"args":{"comm":1,"seq":4,"count":16544,"dtype":"float32","bytes":264704,)"
    R"("reduce":"avg","stream":3,"group":2,"in_place":true,"site":9}})";
const std::string kCopy =
    R"({"name":"cudaMemcpyAsync","cat":"H2D","ph":"X","pid":3,"tid":4720,"ts":1050.002,"dur":1.950,)"
    R"("args":{"bytes":408,"device":3,"host_memory":"pinned","stream":1}})";
const std::string kTime =
    R"({"cat":"DEVICE","name":"ncclAllGather","ph":"X","pid":3,"tid":8388610,"ts":10057.443,)"
    R"("dur":168.897,"args":{"comm":1,"seq":0,"stream":2,"call_tid":7,"queued":5.111}})";
const std::string kBusy =
    R"({"cat":"BUSY","name":"compute","ph":"X","pid":3,"tid":12582915,"ts":10226.341,)"
    R"("dur":36652.167,"args":{"device":3,"unsure":true}})";

std::string with(std::string line, const std::string& part, const std::string& other) {
  const auto at = line.find(part);
  REQUIRE(at != std::string::npos);
  return line.replace(at, part.size(), other);
}

}  // namespace

TEST_CASE("a line of the library gives what its fields say, whatever stood in the value before") {
  Event e;
  REQUIRE(own_lines::call(kCall, e));
  CHECK(e.name == "ncclReduceScatter");
  CHECK(e.bucket == Bucket::RESHARDING);
  CHECK(e.ts_ns == 1'042'117);
  CHECK(e.dur_ns == 6'204);
  CHECK(e.thread == 4720);
  CHECK(e.comm == 1);
  CHECK(e.collective());
  CHECK(e.seq == 4);
  CHECK(e.count == 16544);
  CHECK(e.bytes == 264704);
  CHECK(e.dtype == "float32");
  CHECK(e.reduce == "avg");
  CHECK(e.stream == 3);
  CHECK(e.group == 2);
  CHECK(e.site == 9);
  CHECK_FALSE(e.device);
  REQUIRE(own_lines::call(with(kCall, "\"group\":2,", ""), e));
  CHECK(e.group == 0);
  REQUIRE(own_lines::call(kCall, e));
  CHECK(e.group == 2);
  REQUIRE(own_lines::call(kCopy, e));
  CHECK(e.group == 0);
  CHECK(e.name == "cudaMemcpyAsync");
  CHECK(e.dtype == "byte");
  CHECK(e.count == 408);
  CHECK(e.device == 3);
  CHECK(e.host_memory == HostMemory::pinned);
  CHECK(e.stream == 1);
  CHECK(e.site == 0);
  CHECK(e.reduce.empty());
  CHECK_FALSE(e.comm);
  CHECK_FALSE(e.numbered);

  DeviceTime t;
  REQUIRE(own_lines::device_time(kTime, t));
  CHECK(t.name == "ncclAllGather");
  CHECK(t.comm == 1);
  CHECK(t.seq == 0U);
  CHECK(t.ts_ns == 10'057'443);
  CHECK(t.dur_ns == 168'897);
  CHECK(t.queued_ns == 5'111);
  CHECK(t.thread == 7);
  CHECK(t.lane == 8388610);
  CHECK(t.calls == 1);
  REQUIRE(own_lines::device_time(
      with(with(kTime, R"("comm":1,"seq":0)", R"("device":3)"), "5.111", R"(5.111,"calls":2)"), t));
  CHECK(t.device == 3);
  CHECK(t.calls == 2);
  CHECK_FALSE(t.comm);
  CHECK_FALSE(t.seq);

  Busy b;
  REQUIRE(own_lines::busy(kBusy, b));
  CHECK(b.device == 3);
  CHECK(b.ts_ns == 10'226'341);
  CHECK(b.dur_ns == 36'652'167);
  CHECK(b.unsure);
  REQUIRE(own_lines::busy(with(kBusy, R"(,"unsure":true)", ""), b));
  CHECK_FALSE(b.unsure);
}

TEST_CASE("any other line is left to simdjson") {
  Event e;
  const std::pair<const char*, const char*> kOthers[] = {
      {R"("ph":"X")", R"("ph":"B")"},
      {"RESHARDING", "GRAPH"},
      {"RESHARDING", "resharding"},
      {"1042.117", "1042.11"},
      {"1042.117", "1042.1170"},
      {"1042.117", "-1042.117"},
      {"1042.117", "01042.117"},
      {"1042.117", "1.042117e3"},
      {"1042.117", "1042117000000000.000"},
      {R"("comm":1)", R"("comm":null)"},
      {R"("comm":1)", R"("comm":1 )"},
      {R"("comm":1)", R"("comm":01)"},
      {R"("comm":1)", R"("comm":1.0)"},
      {R"("comm":1)", R"("comm":1234567890123456789)"},
      {R"("comm":1,"seq":4)", R"("seq":4,"comm":1)"},
      {R"("seq":4)", R"("seq":4,"seq":4)"},
      {R"("seq":4)", R"("seq":4,"result":5)"},
      {R"("seq":4)", R"("seq":4,"new":5)"},
      {"{\"comm\"", "{\"captured\":true,\"comm\""},
      {"\"float32\"", "\"float\\u0033\"\""},
      {"\"float32\"", "\"float3\xff\""},
      {"\"float32\"", "\"float\t3\""},
      {"ncclReduceScatter", "nccl\\u0052educeScatter"},
      {"}}", "}"},
      {"}}", "}}}"},
      {"}}", "} }"},
      {"}}", "}} "},
      {R"(,"bytes":264704)", ""},
  };
  for (const auto& [part, other] : kOthers) {
    INFO(other);
    CHECK_FALSE(own_lines::call(with(kCall, part, other), e));
  }
  CHECK_FALSE(own_lines::call(with(kCopy, "pinned", "other"), e));
  CHECK_FALSE(own_lines::call("", e));
  for (std::size_t n = 0; n < kCall.size(); ++n)
    CHECK_FALSE(own_lines::call(kCall.substr(0, n), e));
  DeviceTime t;
  for (std::size_t n = 0; n < kTime.size(); ++n)
    CHECK_FALSE(own_lines::device_time(kTime.substr(0, n), t));
  CHECK_FALSE(own_lines::device_time(with(kTime, R"("comm":1,"seq":0)", R"("graph":1)"), t));
  Busy b;
  for (std::size_t n = 0; n < kBusy.size(); ++n)
    CHECK_FALSE(own_lines::busy(kBusy.substr(0, n), b));
  CHECK_FALSE(own_lines::busy(with(kBusy, "true", "false"), b));
}
