// export/: lines moved to another pid and time axis, and the files they go to.
#include <zlib.h>

#include "analysis_traces.h"
#include "catch2.h"
#include "export/line_writer.h"
#include "export/output.h"
#include "read/json.h"

using namespace tprof;
using namespace tprof::test;

namespace {

std::string edited(std::string text, const trace_export::Placement& to) {
  const std::size_t size = text.size();
  text.reserve(size + simdjson::SIMDJSON_PADDING);
  trace_export::LineWriter writer;
  trace_export::Pen out;
  writer.write(std::string_view(text.data(), size), {.to = to}, out);
  return out.size() == 0 ? "(left out)" : std::string(out.text().substr(2));
}

std::string unzipped(const std::filesystem::path& file) {
  std::string text;
  gzFile f = gzopen(file.c_str(), "rb");
  char part[4096];
  for (int n = 0; (n = gzread(f, part, sizeof part)) > 0;) text.append(part, part + n);
  gzclose(f);
  return text;
}

}  // namespace

TEST_CASE("an event gets another pid and time; every other value stays") {
  CHECK(edited(R"({"name":"f","ph":"X","pid":3,"tid":5,"ts":1042.117,"dur":6.204,"args":{"ts":9}})",
               {12, 1000001, 0}) ==
        R"({"name":"f","ph":"X","pid":12,"tid":5,"ts":2042.118,"dur":6.204,"args":{"ts":9}})");
  CHECK(edited(R"({"name":"f","ts":1.5,"pid":3,"args":{}})", {0, -2000, 0}) ==
        R"({"name":"f","ts":-0.500,"pid":0,"args":{}})");
  CHECK(edited(R"({"name":"a\"pid\":1\"","pid":3,"x":"é"})", {4, 5, 0}) ==
        R"({"name":"a\"pid\":1\"","pid":4,"x":"é"})");
}

TEST_CASE("the time of a metadata line is the one in its arguments") {
  CHECK(edited(R"({"name":"tprof_group","ph":"M","pid":3,"tid":5,"args":{"group":1,"ts":7.000}})",
               {1, 500, 0}) ==
        R"({"name":"tprof_group","ph":"M","pid":1,"tid":5,"args":{"group":1,"ts":7.500}})");
}

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

TEST_CASE("names that a merged trace gives itself are left out") {
  CHECK(edited(R"({"name":"process_name","ph":"M","pid":3,"args":{"name":"rank 3"}})", {}) ==
        "(left out)");
  CHECK(edited(R"({"name":"thread_name","ph":"M","pid":3,"tid":1,"args":{"name":"python"}})",
               {9, 0, 0}) ==
        R"({"name":"thread_name","ph":"M","pid":9,"tid":1,"args":{"name":"python"}})");
}

TEST_CASE("a line that is not one JSON object is refused") {
  for (const char* line : {"", "{", "[]", "x", R"({"name":"f"})", R"({"name":"f","pid":3)",
                           R"({"name":"f","pid":3,"ts":"later"})"}) {
    CHECK_THROWS_AS(edited(line, {}), read::Malformed);
  }
}

TEST_CASE("pieces of a compressed file make one gzip member with the right checksum") {
  const Folder folder;
  const auto file = folder.path() / "x.json.gz";
  std::string all;
  {
    trace_export::Output output(file, true);
    for (int i = 0; i < 5; ++i) {
      std::string text(static_cast<std::size_t>(i) * 1000, static_cast<char>('a' + i));
      all += text;
      trace_export::Piece piece;
      trace_export::pack(text, true, piece);
      output.write(piece);
    }
    output.close();
  }
  CHECK(unzipped(file) == all);
}

TEST_CASE("an output that was not closed leaves no file") {
  const Folder folder;
  {
    trace_export::Output output(folder.path() / "x.json", false);
    std::string text = "half";
    trace_export::Piece piece;
    trace_export::pack(text, false, piece);
    output.write(piece);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}
