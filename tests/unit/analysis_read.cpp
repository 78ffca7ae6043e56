// read/: from bytes to what the metadata lines say.
#include <string>

#include "analysis_folder.h"
#include "catch2.h"
#include "read/error.h"
#include "read/json.h"
#include "read/load.h"

using namespace tprof;
using namespace tprof::test;

namespace {

std::string event(int seq) {
  return R"({"name":"ncclAllGather","cat":"ALLGATHER","ph":"X","pid":0,"tid":7,"ts":1.000,)"
         R"("dur":2.000,"args":{"comm":1,"seq":)" +
         std::to_string(seq) + R"(,"count":1,"dtype":"float32","bytes":8}},)" + "\n";
}

}  // namespace

TEST_CASE("times in microseconds become integer nanoseconds without a double between") {
  CHECK(read::micros_to_ns("1042.117") == 1042117);
  CHECK(read::micros_to_ns("1100.0") == 1100000);
  CHECK(read::micros_to_ns("0.001") == 1);
  CHECK(read::micros_to_ns("7") == 7000);
  CHECK(read::micros_to_ns("-0.250") == -250);
  // A double would be 53 ns off here (style of an epoch time).
  CHECK(read::micros_to_ns("1755561234567890.123") == 1755561234567890123);
  CHECK_THROWS_AS(read::micros_to_ns(""), read::Malformed);
  CHECK_THROWS_AS(read::micros_to_ns("1."), read::Malformed);
  CHECK_THROWS_AS(read::micros_to_ns("1e3"), read::Malformed);
  CHECK_THROWS_AS(read::micros_to_ns("99999999999999999999"), read::Malformed);
}

TEST_CASE("a block reader gives the same lines whatever the size of its blocks") {
  const Folder folder;
  std::string text = "[\n";
  for (int i = 0; i < 200; ++i) text += event(i);
  text += "]";
  const read::Source source{folder.write("f.json", text), read::Source{}.cut, {}};
  for (const std::size_t size : {64U, 200U, 1000U, 100000U}) {
    read::BlockReader reader(source, size);
    read::Block block;
    std::string seen;
    int lines = 0;
    while (reader.next(block)) {
      CHECK(block.offset == seen.size());
      seen += block.text;
      read::each_line(block, [&](const read::Line& line) {
        CHECK(text.substr(line.offset, line.text.size()) == line.text);
        ++lines;
      });
    }
    CHECK(seen + reader.remainder() == text);
    CHECK(lines == 200);
  }
}

TEST_CASE("lines behind the cut of a file come from the rest") {
  const Folder folder;
  const std::string kept = "[\n" + event(1);
  const auto file = folder.write("f.json", kept + "{\"half\":");
  const read::Source source{file, kept.size(), event(2)};
  read::BlockReader reader(source);
  read::Block block;
  std::string seen;
  while (reader.next(block)) seen += block.text;
  CHECK(seen == kept + event(2));
}
