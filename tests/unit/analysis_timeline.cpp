// export/: names of calls, and how calls are found again.
#include "catch2.h"
#include "export/timeline.h"
#include "export/viewers.h"

using namespace tprof;
using namespace tprof::trace_export;

namespace {

std::string name_of(std::string_view function, Bucket bucket, std::optional<std::uint64_t> bytes) {
  CallNames names;
  const CallNames::Name name = names.of(function, bucket, bytes);
  return std::string(name.what) + std::string(name.size);
}

}  // namespace

TEST_CASE("a call is named by its function, a copy by its direction, with the size") {
  CHECK(name_of("ncclAllGather", Bucket::ALLGATHER, 32768) == "AllGather 32 KiB");
  CHECK(name_of("ncclReduceScatter", Bucket::RESHARDING, 10000000) == "ReduceScatter 9.54 MiB");
  CHECK(name_of("cudaMemcpyAsync", Bucket::H2D, 2 << 20) == "H2D 2 MiB");
  CHECK(name_of("ncclSend", Bucket::P2P, 0) == "Send 0 B");
  CHECK(name_of("ncclBcast", Bucket::BROADCAST, std::nullopt) == "Bcast");
}

TEST_CASE("each of many sizes has its own name") {
  CallNames names;
  for (std::uint64_t bytes : {1, 65, 4097, 1, 129, 65, 262144, 4097}) {
    CHECK(names.of("ncclSend", Bucket::P2P, bytes).size == " " + size_for_name(bytes));
  }
}

TEST_CASE("a call is found by when it began and its thread, wherever one looked before") {
  RankTimeline rank;
  for (std::int64_t at = 0; at < 100; ++at) {
    rank.calls.push_back(
        {.begin_ns = at * 10, .thread = 7, .bytes = static_cast<std::uint64_t>(at)});
  }
  for (std::size_t near : {std::size_t{0}, std::size_t{50}, std::size_t{100}, std::size_t{5000}}) {
    std::size_t from = near;
    for (std::int64_t at : {0, 3, 99, 50, 51, 49}) {
      const DrawnCall* found = rank.call(at * 10, 7, from);
      REQUIRE(found != nullptr);
      CHECK(found->size() == static_cast<std::uint64_t>(at));
      CHECK(rank.call(at * 10 + 1, 7, from) == nullptr);
      CHECK(rank.call(at * 10, 8, from) == nullptr);
    }
  }
}

TEST_CASE("windows are 1, 2 or 5 times a power of ten long, and no job has more than 1,000") {
  constexpr std::int64_t kMs = 1'000'000;
  CHECK(window_of(0) == kMs);
  CHECK(window_of(999 * kMs) == kMs);
  CHECK(window_of(1000 * kMs) == 2 * kMs);
  CHECK(window_of(2000 * kMs) == 5 * kMs);
  CHECK(window_of(3'600'000 * kMs) == 5000 * kMs);
}
