// The program's NVTX ranges, and the scopes of user/tprof.h, as they are stored in the mapped file:
// open ones in a stack per thread, closed ones in the thread's ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tprof {

// Lane of a thread's ranges: its tid + this, which is above every tid (PID_MAX_LIMIT).
inline constexpr std::uint32_t kRangeLane = 1U << 22;
inline constexpr char kRangeCategory[] = "NVTX";

inline constexpr std::uint32_t kMaxRangeName = 128;  // bytes; longer ones are cut
inline constexpr std::uint32_t kMaxRangeError = 48;  // bytes of an exception's type
inline constexpr std::uint32_t kMaxOpenRanges = 32;  // nested in one another on a thread
inline constexpr std::uint32_t kMaxStartedRanges = 64;
inline constexpr std::uint32_t kMaxRangeDomains = 64;
inline constexpr std::uint32_t kMaxRangeCategories = 256;  // named ones, in all domains
// Scopes of tprof.h: their domain, the category of a step's phases, and the name of a step, before
// its number.
inline constexpr std::string_view kScopeDomain = "tprof";
inline constexpr std::string_view kScopePhase = "phase";
inline constexpr std::string_view kScopeStep = "step";
inline constexpr std::uint8_t kDefaultDomain = 0;
inline constexpr std::uint8_t kUnknownDomain = 255;  // the table was full

// nested: pushed and popped. free: started and ended, or popped from under another range, so that
// it may overlap others of its lane. mark: a moment.
enum class RangeKind : std::uint8_t { nested, free, mark };

struct RangeDomain {
  std::atomic<std::uint32_t> known;  // 1: the name is whole
  char name[60];                     // cut if longer
};
static_assert(sizeof(RangeDomain) == 64);

// The first name given to a category.
struct RangeCategory {
  std::uint32_t category;
  std::uint8_t domain;
  char name[59];  // cut if longer
};
static_assert(sizeof(RangeCategory) == 64 && std::is_trivially_copyable_v<RangeCategory>);

// A range's attributes besides its name; OpenRange::given says which of them the program gave.
struct RangeAttributes {
  std::uint64_t payload;   // its bits, by RangePayload
  std::uint32_t category;  // never 0
  std::uint32_t color;     // 0xAARRGGBB
};
static_assert(sizeof(RangeAttributes) == 16);
enum class RangePayload : std::uint8_t { none, positive, integer, real };
inline constexpr std::uint8_t kGivenCategory = 1;
inline constexpr std::uint8_t kGivenColor = 2;
inline constexpr std::uint8_t kGivenAmounts = 16;
inline constexpr std::uint8_t kGivenError = 32;  // after the name and a NUL
constexpr std::uint8_t given_payload(RangePayload payload) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(payload) << 2);
}
constexpr RangePayload payload_of(std::uint8_t given) {
  return static_cast<RangePayload>(given >> 2 & 3);
}

// The amounts that a scope handled; 0: not given.
struct RangeAmounts {
  std::uint64_t elements;
  std::uint64_t bytes;
};
static_assert(sizeof(RangeAmounts) == sizeof(RangeAttributes));

// A range is open if `start_ns` is not 0 and no committed transaction closes it. The fields are
// filled from the end: `start_ns` makes the range visible.
struct OpenRange {
  std::uint64_t start_ns;  // CLOCK_MONOTONIC
  std::uint64_t closed;    // transaction of the thread that ends it, 0: none
  std::uint64_t closer;    // of a started range: offset of the ending thread's area
  std::uint32_t tid;       // the thread that began it
  std::uint8_t domain;
  std::uint8_t device;
  std::uint8_t length;         // of the name and the error after it
  std::uint8_t given;          // which attributes are filled; 0: none
  RangeAmounts amounts;        // must directly precede the attributes
  RangeAttributes attributes;  // must precede the name: see range_bytes()
  char name[kMaxRangeName];
  bool counts;      // a scope, which the ledger's totals count when it has ended (scopes.h)
  char unused[15];  // records are copied whole
};
static_assert(sizeof(OpenRange) == 208 && std::is_trivially_copyable_v<OpenRange>);
static_assert(offsetof(OpenRange, attributes) ==
              offsetof(OpenRange, amounts) + sizeof(RangeAmounts));
static_assert(offsetof(OpenRange, name) ==
              offsetof(OpenRange, attributes) + sizeof(RangeAttributes));

constexpr std::string_view range_text(const OpenRange& range) {
  return {range.name, range.length < kMaxRangeName ? range.length : kMaxRangeName};
}
// If an exception left the scope, the error follows the name.
constexpr std::string_view range_name(const OpenRange& range) {
  const std::string_view text = range_text(range);
  const bool both = (range.given & kGivenError) != 0;
  const std::size_t end = both ? text.find('\0') : std::string_view::npos;
  return {text.data(), end == std::string_view::npos ? text.size() : end};
}
constexpr std::string_view range_error(const OpenRange& range) {
  const std::string_view text = range_text(range);
  const std::size_t from = range_name(range).size() + 1;
  return from > text.size() ? std::string_view()
                            : std::string_view(text.data() + from, text.size() - from);
}

// A closed range takes as many records as its amounts, attributes and name need: kMetaRange, then
// kMetaRangeMore, all of one transaction. Each equals a Record in its first 24 bytes and in
// `function`.
struct RangeRecord {
  static constexpr std::uint32_t kBytes = 32;

  std::uint64_t start_ns;
  std::uint64_t txn;
  std::uint64_t dur_ns : 48;
  std::uint64_t length : 8;  // of the whole name
  std::uint64_t kind : 8;    // RangeKind
  char bytes[kBytes];        // this record's part of attributes and name
  std::uint32_t tid;         // the thread that began it
  std::uint8_t function;
  std::uint8_t domain;
  std::uint8_t device;
  std::uint8_t given;
};

// The bytes of an OpenRange that its records hold: the offset of the first, and their number.
constexpr std::size_t range_bytes_at(const OpenRange& range) {
  return (range.given & kGivenAmounts) != 0 ? offsetof(OpenRange, amounts)
         : range.given != 0                 ? offsetof(OpenRange, attributes)
                                            : offsetof(OpenRange, name);
}
constexpr std::uint32_t range_bytes(const OpenRange& range) {
  return static_cast<std::uint32_t>(offsetof(OpenRange, name) - range_bytes_at(range)) +
         range.length;
}
constexpr std::uint32_t range_records(const OpenRange& range) {
  const std::uint32_t bytes = range_bytes(range);
  return bytes == 0 ? 1 : (bytes + RangeRecord::kBytes - 1) / RangeRecord::kBytes;
}

static_assert(sizeof(RangeRecord) == 64 && std::is_trivially_copyable_v<RangeRecord>);

// The reasons why ranges have no line. `open`: too many were open at a time.
enum class RangeDropped : std::uint32_t { quota, ring, write_error, open, window };
inline constexpr const char* kRangeDroppedNames[] = {"quota", "ring", "write_error", "open",
                                                     "window"};
inline constexpr std::size_t kRangeDroppedCount = 5;

// The quota of range lines is this part of that of event lines: 16 MiB by default.
inline constexpr std::uint64_t kRangeQuotaDivisor = 4;

}  // namespace tprof
