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
