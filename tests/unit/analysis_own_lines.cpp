// Lines that differ from those of the library are not read without simdjson. tool/test_scale.py
// tests that the library's are, and give the same.
#include <vector>

#include "catch2.h"
#include "read/own_lines.h"

namespace {

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

TEST_CASE("any other line is left to simdjson") {
  Event e;
  REQUIRE(own_lines::call(kCall, e));
  REQUIRE(own_lines::call(kCopy, e));
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
  REQUIRE(own_lines::device_time(kTime, t));
  for (std::size_t n = 0; n < kTime.size(); ++n)
    CHECK_FALSE(own_lines::device_time(kTime.substr(0, n), t));
  CHECK_FALSE(own_lines::device_time(with(kTime, R"("comm":1,"seq":0)", R"("graph":1)"), t));
  Busy b;
  REQUIRE(own_lines::busy(kBusy, b));
  for (std::size_t n = 0; n < kBusy.size(); ++n)
    CHECK_FALSE(own_lines::busy(kBusy.substr(0, n), b));
  CHECK_FALSE(own_lines::busy(with(kBusy, "true", "false"), b));
}
