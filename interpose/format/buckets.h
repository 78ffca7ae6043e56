// The buckets of the contract, in the order in which reports list them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tprof {

// X(name, event lines by default)
// D2D, H2H and MANAGED copies are in the ledger always and in the event lines only on request:
// PyTorch makes thousands of D2D copies a step.
#define TPROF_BUCKETS(X) \
  X(ALLGATHER, true)     \
  X(RESHARDING, true)    \
  X(H2D, true)           \
  X(D2H, true)           \
  X(ALLREDUCE, true)     \
  X(BROADCAST, true)     \
  X(REDUCE, true)        \
  X(ALLTOALL, true)      \
  X(P2P, true)           \
  X(EP, true)            \
  X(OTHER_COLL, true)    \
  X(D2D, false)          \
  X(H2H, false)          \
  X(MANAGED, false)

enum class Bucket : std::uint8_t {
#define X(name, lines) name,
  TPROF_BUCKETS(X)
#undef X
};

struct BucketInfo {
  std::string_view name;
  bool lines;  // event lines by default
};

inline constexpr BucketInfo kBuckets[] = {
#define X(name, lines) {#name, lines},
    TPROF_BUCKETS(X)
#undef X
};
inline constexpr std::size_t kBucketCount = sizeof(kBuckets) / sizeof(kBuckets[0]);

constexpr std::string_view bucket_name(Bucket b) {
  const auto i = static_cast<std::size_t>(b);
  return i < kBucketCount ? kBuckets[i].name : std::string_view("?");
}

constexpr bool is_copy(Bucket b) {
  return b == Bucket::H2D || b == Bucket::D2H || b == Bucket::D2D || b == Bucket::H2H ||
         b == Bucket::MANAGED;
}

// Chrome category of graph launches. It is not a bucket: the replayed ledger rows count what a
// launch moves.
inline constexpr std::string_view kGraphCategory = "GRAPH";
// Chrome category of the calls of a communicator's life, which move nothing either.
inline constexpr std::string_view kLifeCategory = "COMM";

}  // namespace tprof
