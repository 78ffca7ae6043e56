// read/: from bytes to what the metadata lines say.
#include <iterator>
#include <vector>

#include "analysis_traces.h"
#include "catch2.h"
#include "read/error.h"
#include "read/json.h"
#include "read/load.h"

using namespace tprof;
using namespace tprof::test;

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

TEST_CASE("a big closed file is read from its two ends, and gives what reading all of it gives") {
  const Folder folder;
  std::string events;
  for (int i = 0; i < 2000; ++i) events += event(i);
  const std::string last = ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 2000), 0,
                                  R"({"comm":1,"collectives":2000,"signature":"5","marks":[]})");
  const std::string early = "[\n" + header() + comm(1, "aa") + events + events + last + footer();

  SECTION("a corrupt line in the middle is not even looked at") {
    std::string text = early;
    text.replace(text.size() / 2, 30, "{\"name\":\"tprof_header\" broken\n{");
    text.insert(text.size() / 2, "\n");
    const read::Trace trace = read::load(folder.write("rank.json", text));
    CHECK(trace.processes.at(0).ledger.value().rows.begin()->amounts.calls == 2000);
  }
  SECTION("a communicator that was made in the middle is found by reading all of it") {
    const std::string late = "[\n" + header() + events + comm(1, "aa") + events + last + footer();
    const read::Trace trace = read::load(folder.write("rank.json", late));
    CHECK(trace.processes.at(0).comms.at(1).id == "aa");
  }
  SECTION("a rank that was told in the middle is found by reading all of it") {
    const std::string told =
        "[\n" + header({.rank = "null", .world_size = "null"}) + comm(1, "aa") + events +
        R"({"name":"tprof_identity","ph":"M","pid":0,"tid":0,"args":{"rank":3,"world_size":8}},)" +
        "\n" + events + last + footer();
    const read::Trace trace = read::load(folder.write("rank.json", told));
    CHECK(trace.processes.at(0).header.rank == 3);
    CHECK(trace.processes.at(0).header.world_size == 8);
  }
  SECTION("an earlier epoch in the middle is found by reading all of it") {
    const std::string reset =
        "[\n" + header() + comm(1, "aa") + events +
        ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 7), 0, "", "reset") + events +
        ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 8), 1) + footer();
    const read::Trace trace = read::load(folder.write("rank.json", reset));
    CHECK(trace.processes.at(0).epoch_ends.size() == 1);
  }
  SECTION("a ledger longer than the last block is read whole") {
    std::string rows;
    for (int i = 0; i < 2000; ++i) {
      rows += (i == 0 ? "" : ",") + row("H2D", "cudaMemcpyAsync", "null", "direct", 1);
    }
    const read::Trace trace = read::load(folder.write(
        "rank.json", "[\n" + header() + comm(1, "aa") + events + ledger(rows) + footer()));
    const read::Rows& read_back = trace.processes.at(0).ledger.value().rows;
    CHECK(std::ranges::distance(read_back.begin(), read_back.end()) == 2000);
  }
}

TEST_CASE("a file cut at any byte is read up to its last whole line, or refused") {
  const Folder folder;
  const std::string before = "[\n" + header();
  const std::string first = before + comm(1, "aa") + event(1) +
                            ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 1));
  const std::string second =
      first + event(2) + ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 2));
  const std::string whole = second + footer();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const auto file = folder.write("rank.json", whole.substr(0, size));
    CAPTURE(size);
    if (size < before.size()) {
      CHECK_THROWS_AS(read::load(file), read::NotATrace);
      continue;
    }
    const read::Process p = read::load(file).processes.at(0);
    const std::uint64_t expected = size < first.size() ? 0 : size < second.size() ? 1 : 2;
    const std::uint64_t found = p.ledger ? p.ledger->rows.begin()->amounts.calls : 0;
    CHECK(found == expected);
    const bool closed = size + 2 >= whole.size();  // all but "]\n"
    CHECK((p.end == read::End::closed) == closed);
    const bool between_lines = whole[size - 1] == '\n' || size + 1 == whole.size();
    CHECK(p.cut == !between_lines);
  }
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
