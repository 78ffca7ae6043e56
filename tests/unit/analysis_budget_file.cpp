// budget/file.h: a budget is written of a run, or by hand, and read.
#include "budget/budget.h"

#include "analysis_budget_toy.h"
#include "analysis_traces.h"
#include "catch2.h"
#include "read/error.h"

using namespace tprof;
using namespace tprof::test;

TEST_CASE("a budget that was written says the same when it is read", "[budget]") {
  const test::Folder folder;
  Figures more = fsdp_figures();
  more[key(Bucket::ALLGATHER)].bytes += 400;
  const Measured good{.from = Measured::From::lines,
                      .steps = 4,
                      .groups = {{{0}, fsdp_figures()}, {{1}, more}},
                      .nranks = 2};
  write_file(of_run(good, 0.1), folder.path() / "b.json");
  const Budget budget = read_file(folder.path() / "b.json");
  CHECK(budget.nranks == 2);
  CHECK(budget.others_fail);
  REQUIRE(budget.limits.size() == 2);
  CHECK(budget.limits[0].bucket == Bucket::ALLGATHER);
  CHECK(budget.limits[0].dtype == "float32");
  CHECK(budget.limits[0].calls.least == 5);
  CHECK(budget.limits[0].bytes.least == Approx(0.9 * 13280 * 4));
  CHECK(budget.limits[0].bytes.most == Approx(1.1 * (13280 * 4 + 400)));
  CHECK(compare(good, budget).within);
  CHECK_THROWS_AS(write_file(budget, folder.path() / "b.json"), read::CantWrite);

  Figures wide;
  for (auto [of, moved] : fsdp_figures()) {
    Key as = of;
    as.dtype = "float64";
    wide[as] = {moved.calls, 2 * moved.bytes, moved.elements};
  }
  const Compared c = compare({.steps = 1, .groups = {{{0}, wide}}}, budget);
  CHECK(c.sentences ==
        std::vector<std::string>{
            "ALLGATHER moves float64 where float32 was expected: 2 times the bytes",
            "RESHARDING moves float64 where float32 was expected: 2 times the bytes"});
}

TEST_CASE("a budget by hand may have few limits, and no misspelt ones", "[budget]") {
  const test::Folder folder;
  const auto read = [&](std::string_view text) { return read_file(folder.write("b.json", text)); };
  const Budget one = read(R"({"schema":"tprof-budget/1","rows":[{"bucket":"ALLGATHER",
      "bytes_per_step":{"max":53120}}]})");
  CHECK_FALSE(one.others_fail);
  const Measured measured{.steps = 4, .groups = {{{0}, fsdp_figures()}}};
  CHECK(compare(measured, one).within);
  const Budget less = read(R"({"schema":"tprof-budget/1","rows":[{"bucket":"ALLGATHER",
      "bytes_per_step":{"max":53119}}]})");
  CHECK_FALSE(compare(measured, less).within);
  for (
      const char* text :
      {"[]", "{", R"({"schema":"tprof-budget/2","rows":[{"bucket":"ALLGATHER"}]})",
       R"({"schema":"tprof-budget/1","rows":[]})",
       R"({"schema":"tprof-budget/1","rows":[{"bucket":"ALLGATHERS"}]})",
       R"({"schema":"tprof-budget/1","rows":[{"bucket":"ALLGATHER","bytes":{"max":1}}]})",
       R"({"schema":"tprof-budget/1","rows":[{"bucket":"ALLGATHER","bytes_per_step":{"max":-1}}]})",
       R"({"schema":"tprof-budget/1","rows":[{"bucket":"ALLGATHER","bytes_per_step":{"most":1}}]})",
       R"({"schema":"tprof-budget/1","others":"all","rows":[{"bucket":"ALLGATHER"}]})"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read(text), read::BadInput);
  }
}

TEST_CASE("small calls and usual copies of a run are in its budget", "[budget]") {
  const test::Folder folder;
  Figures figures = fsdp_figures();
  figures[key(Bucket::ALLREDUCE, "float32", true)] = {2, 8, 2};
  figures[key(Bucket::H2D, "byte")] = {4, 4096, 4096};
  Figures often;  // a third of the steps has more
  often[key(Bucket::ALLREDUCE, "float32", true)] = {3, 12, 3};
  often[key(Bucket::H2D, "byte")] = {5, 5000, 5000};
  const Measured good{
      .from = Measured::From::lines, .steps = 4, .groups = {{{0, 1}, figures, often}}};
  write_file(of_run(good, 0), folder.path() / "b.json");
  const Budget budget = read_file(folder.path() / "b.json");
  REQUIRE(budget.small);
  CHECK(*budget.small == std::map<Bucket, SmallLimit>{{Bucket::ALLREDUCE, {3, 12}}});
  for (const Limit& limit : budget.limits) {
    CHECK(limit.usual == (limit.bucket == Bucket::H2D ? 4 : 0));
    if (limit.bucket == Bucket::H2D) CHECK(limit.bytes.most == 5000);
  }
  CHECK(compare(good, budget).within);

  Measured more = good;
  more.groups[0].figures[key(Bucket::ALLREDUCE, "float32", true)] = {4, 16, 4};
  CHECK_FALSE(compare(more, budget).within);
  more.from = Measured::From::ledger;  // setup may have made them
  CHECK(compare(more, budget).within);
  Budget none = budget;
  none.small.reset();
  more.from = Measured::From::lines;
  CHECK(compare(more, none).within);
}
