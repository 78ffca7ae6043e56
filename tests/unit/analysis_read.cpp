// read/: from bytes to what the metadata lines say.
#include <string>
#include <vector>

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

TEST_CASE("rows come back as they went in, whatever their figures are") {
  std::vector<read::Row> given;
  for (int i = 0; i < 200; ++i) {
    read::Row row;
    row.bucket = static_cast<Bucket>(i % static_cast<int>(kBucketCount));
    row.name = "name" + std::to_string(i % 7);
    row.dtype = i % 2 == 0 ? "float32" : "";
    if (i % 3 != 0) row.comm = i % 3 == 1 ? i : -i;
    if (i % 5 == 0) row.device = 7;
    row.bytes_class = i % 65 - 1;
    row.amounts.calls = std::uint64_t{1} << i % 64;
    row.amounts.host_ns = i % 4 == 0 ? 0 : read::kSaturated - static_cast<std::uint64_t>(i);
    row.amounts.replayed = static_cast<std::uint64_t>(i);
    given.push_back(row);
  }
  read::Rows rows;
  CHECK(rows.empty());
  for (const read::Row& row : given) rows.push_back(row);
  std::size_t n = 0;
  for (const read::Row& row : rows) {
    REQUIRE(n < given.size());
    CHECK(static_cast<const read::RowKey&>(row) == given[n]);
    CHECK(row.amounts.calls == given[n].amounts.calls);
    CHECK(row.amounts.bytes == 0);
    CHECK(row.amounts.host_ns == given[n].amounts.host_ns);
    CHECK(row.amounts.replayed == given[n].amounts.replayed);
    ++n;
  }
  CHECK(n == given.size());
  rows.clear();
  CHECK(rows.empty());
}
