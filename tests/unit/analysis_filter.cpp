// filter/: what the words of a filter mean, and when a row of a ledger tells by itself.
#include <string>

#include "catch2.h"
#include "filter/filter.h"

using namespace tprof;

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
