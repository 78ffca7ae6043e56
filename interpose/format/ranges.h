// The program's NVTX ranges, as they lie in the mapped file: open ones in a stack of their
// thread's, closed ones in its ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tprof {

// Lane of a thread's ranges: its tid + this, which is above every tid (PID_MAX_LIMIT).
inline constexpr std::uint32_t kRangeLane = 1U << 22;
inline constexpr char kRangeCategory[] = "NVTX";

inline constexpr std::uint32_t kMaxRangeName = 128;  // bytes; longer ones are cut
inline constexpr std::uint32_t kMaxOpenRanges = 32;  // on a thread, one in the other
inline constexpr std::uint32_t kMaxStartedRanges = 64;
inline constexpr std::uint32_t kMaxRangeDomains = 64;
inline constexpr std::uint8_t kDefaultDomain = 0;
inline constexpr std::uint8_t kUnknownDomain = 255;  // there were more than the table holds

// nested: pushed and popped. free: started and ended, or popped from under another: it may overlap
// others of its lane. mark: a moment.
enum class RangeKind : std::uint8_t { nested, free, mark };

struct RangeDomain {
  std::atomic<std::uint32_t> known;  // 1: the name is whole
  char name[60];                     // cut where it is longer
};
static_assert(sizeof(RangeDomain) == 64);

// It is open where `start_ns` is not 0 and the transaction that closes it, if there is one, is not
// yet committed. Filled from the end: `start_ns` makes it visible.
struct OpenRange {
  std::uint64_t start_ns;  // CLOCK_MONOTONIC
  std::uint64_t closed;    // transaction of the thread that ends it, 0: none
  std::uint64_t closer;    // of a started range: offset of that thread's area
  std::uint32_t tid;       // that began it
  std::uint8_t domain;
  std::uint8_t device;
  std::uint8_t length;
  std::uint8_t reserved;
  char name[kMaxRangeName];
};
static_assert(sizeof(OpenRange) == 160 && std::is_trivially_copyable_v<OpenRange>);

// A range that has ended takes as many records as its name needs, one behind the other, of the same
// transaction: kMetaRange, then kMetaRangeName. Each is a Record in its first 24 bytes and in
// `function`.
struct RangeRecord {
  static constexpr std::uint32_t kNameBytes = 32;

  std::uint64_t start_ns;
  std::uint64_t txn;
  std::uint64_t dur_ns : 48;
  std::uint64_t length : 8;  // of the whole name
  std::uint64_t kind : 8;    // RangeKind
  char name[kNameBytes];     // this record's part of it
  std::uint32_t tid;         // that began it
  std::uint8_t function;
  std::uint8_t domain;
  std::uint8_t device;
  std::uint8_t reserved;
};

constexpr std::uint32_t range_records(std::uint32_t name_bytes) {
  return name_bytes == 0 ? 1 : (name_bytes + RangeRecord::kNameBytes - 1) / RangeRecord::kNameBytes;
}

static_assert(sizeof(RangeRecord) == 64 && std::is_trivially_copyable_v<RangeRecord>);

// Why ranges have no line. `open`: more were open at a time than there is room for.
enum class RangeDropped : std::uint32_t { quota, ring, write_error, open, window };
inline constexpr const char* kRangeDroppedNames[] = {"quota", "ring", "write_error", "open",
                                                     "window"};
inline constexpr std::size_t kRangeDroppedCount = 5;

// Bytes of range lines for each byte of event lines, as a fraction: 16 MiB at the default quota.
inline constexpr std::uint64_t kRangeQuotaDivisor = 4;

}  // namespace tprof
