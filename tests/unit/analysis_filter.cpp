// filter/: what the words of a filter mean, and when a row of a ledger tells by itself.
#include <string>

#include "analysis_traces.h"
#include "catch2.h"
#include "filter/filter.h"
#include "read/error.h"

using namespace tprof;
using namespace tprof::test;

namespace {

read::Row row_of(std::uint64_t calls, std::uint64_t bytes, std::int64_t bytes_class) {
  read::Row row;
  row.bucket = Bucket::ALLGATHER;
  row.name = std::string("ncclAllGather");
  row.comm = 1;
  row.bytes_class = bytes_class;
  row.amounts.calls = calls;
  row.amounts.bytes = bytes;
  return row;
}

filter::Holds holds(const std::string& sizes, const read::Row& row) {
  const filter::Calls calls(filter::parsed({.sizes = sizes}), {});
  return calls.row({}, row);
}

}  // namespace

TEST_CASE("names match whatever their case, and a star is any text") {
  CHECK(matches("ncclallgather", "ncclAllGather"));
  CHECK(matches("nccl*Reduce*", "ncclReduceScatter"));
  CHECK(matches("*", ""));
  CHECK(matches("**a*b", "xaabb"));
  CHECK_FALSE(matches("ncclAll", "ncclAllGather"));
  CHECK_FALSE(matches("*Reduce", "ncclReduceScatter"));
  CHECK_FALSE(matches("", "x"));
}

TEST_CASE("steps are ranges, open or not, and lists of these") {
  const auto in = [](const char* words, std::int64_t step) {
    return filter::parsed({.steps = words}).steps->holds(step);
  };
  CHECK(in("3,5-7,20-", 3));
  CHECK(in("3,5-7,20-", 7));
  CHECK(in("3,5-7,20-", 1'000'000));
  for (const std::int64_t out : {0, 2, 4, 8, 19}) CHECK_FALSE(in("3,5-7,20-", out));
  for (const char* bad : {"x", "-3", "5-3", "3-x", "3,", ",3", "3;5", "3 "}) {
    CHECK_THROWS_AS(filter::parsed({.steps = bad}), read::BadInput);
  }
}

TEST_CASE("sizes have binary units, and both borders are in them") {
  const Sizes s = filter::parsed({.sizes = "64KiB-1M"}).sizes.at(0);
  CHECK((s.holds(64 << 10) && s.holds(1 << 20)));
  CHECK_FALSE((s.holds((64 << 10) - 1) || s.holds((1 << 20) + 1)));
  CHECK(filter::parsed({.sizes = "32768"}).sizes.at(0).most == 32768);
  for (const char* bad : {"x", "-", "2M-1M", "1M-2M-3M", "1Q", "1M,"}) {
    CHECK_THROWS_AS(filter::parsed({.sizes = bad}), read::BadInput);
  }
}

TEST_CASE("a row tells by itself where all of its calls are on one side of a border") {
  using filter::Holds;
  const read::Row mixed = row_of(10, 10 * 1500, 10);  // calls of 1024 to 2047 bytes
  CHECK(holds("1K-", mixed) == Holds::yes);
  CHECK(holds("2K-", mixed) == Holds::no);
  CHECK(holds("-1023", mixed) == Holds::no);
  CHECK(holds("1500-", mixed) == Holds::some);
  CHECK(holds("-1K", mixed) == Holds::some);  // some may be of 1024 bytes
  // All are of the least size that the class has, as their sum is no more.
  CHECK(holds("-1K", row_of(10, 10 * 1024, 10)) == Holds::yes);
  CHECK(holds("1025-", row_of(10, 10 * 1024, 10)) == Holds::no);
  // One call is as large as its sum.
  CHECK(holds("1500", row_of(1, 1500, 10)) == Holds::yes);
  CHECK(holds("1501-", row_of(1, 1500, 10)) == Holds::no);
  CHECK(holds("-1", row_of(3, 0, -1)) == Holds::yes);
}
