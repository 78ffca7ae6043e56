// export/: the clocks of lines that are moved to another time axis, the names of calls, and
// windows.
#include "catch2.h"
#include "export/line_writer.h"
#include "export/timeline.h"
#include "export/viewers.h"
#include "read/json.h"

using namespace tprof;

namespace {

std::string edited(std::string text, const trace_export::Placement& to) {
  const std::size_t size = text.size();
  text.reserve(size + simdjson::SIMDJSON_PADDING);
  trace_export::LineWriter writer;
  trace_export::Pen out;
  writer.write(std::string_view(text.data(), size), {.to = to}, out);
  return out.size() == 0 ? "(left out)" : std::string(out.text().substr(2));
}

}  // namespace

TEST_CASE("header and clock lines say what the new axis is, so a merge can be merged again") {
  const std::string header_line = edited(
      R"({"name":"tprof_header","ph":"M","pid":3,"tid":0,"args":{"schema":"tprof/1","base_time_ns":1000,"clock":[[0,1000,48],[5,1005,48]]}})",
      {3, 600, 400});
  CHECK(
      header_line ==
      R"({"name":"tprof_header","ph":"M","pid":3,"tid":0,"args":{"schema":"tprof/1","base_time_ns":400,"clock":[[600,1000,48],[605,1005,48]]}})");
  CHECK(edited(R"({"name":"tprof_clock","ph":"M","pid":3,"tid":0,"args":{"clock":[7,1007,20]}})",
               {3, 600, 400}) ==
        R"({"name":"tprof_clock","ph":"M","pid":3,"tid":0,"args":{"clock":[607,1007,20]}})");
}

TEST_CASE("each of many sizes has its own name") {
  trace_export::CallNames names;
  for (std::uint64_t bytes : {1, 65, 4097, 1, 129, 65, 262144, 4097}) {
    CHECK(names.of("ncclSend", Bucket::P2P, bytes).size ==
          " " + trace_export::size_for_name(bytes));
  }
}

TEST_CASE("windows are 1, 2 or 5 times a power of ten long, and no job has more than 1,000") {
  constexpr std::int64_t kMs = 1'000'000;
  CHECK(trace_export::window_of(0) == kMs);
  CHECK(trace_export::window_of(999 * kMs) == kMs);
  CHECK(trace_export::window_of(1000 * kMs) == 2 * kMs);
  CHECK(trace_export::window_of(2000 * kMs) == 5 * kMs);
  CHECK(trace_export::window_of(3'600'000 * kMs) == 5000 * kMs);
}
