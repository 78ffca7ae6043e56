// budget/file.h: a budget is written of a run, or by hand, and read.
#include "budget/budget.h"

#include "analysis_budget_toy.h"
#include "analysis_folder.h"
#include "catch2.h"
#include "read/error.h"

using namespace tprof;
using namespace tprof::test;

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
