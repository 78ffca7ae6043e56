// Which hosts may run ahead of their devices.
#include "catch2.h"
#include "steps/pace.h"

using namespace tprof;

namespace {

// The ranks have so many copies from the device, in three steps each.
steps::Found reading(std::vector<read::Process>& ranks, const std::vector<std::uint64_t>& reads) {
  steps::Found found;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    read::Row row;
    row.bucket = Bucket::D2H;
    row.amounts.calls = reads[r];
    ranks[r].ledger.emplace().rows.push_back(row);
    found.ranks[&ranks[r]].resize(3);
  }
  found.steps = {1, 2, 3};
  return found;
}

}  // namespace

TEST_CASE("hosts may run ahead where one rank reads fewer values than it makes steps") {
  std::vector<read::Process> ranks(2);
  CHECK(!steps::may_run_ahead(reading(ranks, {3, 3})));
  CHECK(steps::may_run_ahead(reading(ranks, {6, 0})));
  CHECK(steps::may_run_ahead(reading(ranks, {3, 2})));
  // Each by its own steps: one that came for the last two reads in both.
  steps::Found found = reading(ranks, {3, 2});
  found.ranks[&ranks[1]].resize(2);
  CHECK(!steps::may_run_ahead(found));
}
