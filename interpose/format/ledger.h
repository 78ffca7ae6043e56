// The exact counts: one table per thread, written by that thread only, in the mapped file.
//
// A row has two slots of values. A transaction writes into the older slot of each row that it
// touches and marks the slot with its number. A single store to the thread's `committed` then makes
// all of them valid at once. A kill at any instruction therefore leaves all of a call (or of a
// group's calls and their records) or nothing of it. tests/fault tries this.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "interpose/base/hash.h"
#include "interpose/format/buckets.h"
#include "interpose/format/host_memory.h"

namespace tprof {

// A thread's purpose, taken from its name. A process's ledger is kept by thread, so splitting it by
// purpose costs nothing. autograd: PyTorch's, which runs a device's backward pass. mixed: many
// threads' calls.
enum class ThreadKind : std::uint8_t { other, autograd, mixed };

inline constexpr std::string_view kAutogradThread = "autograd";  // its name in lines

// `name` is the thread's name. PyTorch's autograd threads are pt_autograd_<device>.
constexpr ThreadKind thread_kind(std::string_view name) {
  return name.starts_with("pt_autograd_") ? ThreadKind::autograd : ThreadKind::other;
}

// Copies an object word by word while its owner may be changing it. The copy is valid only once the
// caller has checked, by the owner's `committed` or by copying again, that the object did not
// change. The owner is on the hot path and uses plain stores. This is the one deliberate race with
// it, and is hidden from ThreadSanitizer.
template <typename T>
__attribute__((no_sanitize("thread"))) inline T copy_in_use(const T& from) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0 &&
                alignof(T) >= alignof(std::uint64_t));
  using Word [[gnu::may_alias]] = std::uint64_t;
  const auto* at = reinterpret_cast<const volatile Word*>(&from);
  std::uint64_t words[sizeof(T) / sizeof(Word)]{};
  for (std::size_t i = 0; i < sizeof(T) / sizeof(Word); ++i) words[i] = at[i];
  T to;
  std::memcpy(&to, words, sizeof to);
  return to;
}

// in_graph: what one launch of a graph executes. These rows are not in the ledger's lines.
enum class Mode : std::uint8_t { direct, captured, replayed, in_graph };
inline constexpr const char* kModeNames[] = {"direct", "captured", "replayed"};

constexpr std::string_view mode_name(Mode mode) {
  const auto i = static_cast<std::size_t>(mode);
  return i < sizeof kModeNames / sizeof *kModeNames ? kModeNames[i] : "?";
}

// waiting: calls of an open group that found the ring full. timed: calls of `counted` that were
// timed on the device; the fields for the host's time hold the device's. The longest is of one
// call, or of its share of a group that issued several together.
//
// exposed: calls of `timed` whose exposed part is known. `count` holds their device time, the
// fields for the host's time hold the exposed part, and `failed` counts the late calls.
enum class RowKind : std::uint8_t { counted, waiting, timed, exposed };

// The function of rows whose calls found no row of their own. Their bucket, data type and mode are
// known, and `count` is elements. (Function numbers start at 1.)
inline constexpr std::uint8_t kOtherFunctions = 0;
inline constexpr std::string_view kOtherFunctionsName = "other";

// The key says what a row counts. All zero: row not in use.
struct LedgerKey {
  std::uint8_t function;
  Bucket bucket;
  std::uint8_t dtype;
  Mode mode;
  std::int8_t bytes_class;  // floor(log2(bytes of the call)), -1 for 0; kMetaSignature: bin
  RowKind kind;
  ThreadKind thread;       // of timed and exposed rows; other rows have their thread area's
  HostMemory host_memory;  // of copies between host and device
  std::uint32_t comm;      // as in a record: communicator, copies: device + 1; 0: none
  std::uint32_t graph;     // in_graph: the graph whose launches execute it; kMetaLaunch: executable

  // The key as two words: the hot path makes and compares it in this form.
  struct Words {
    std::uint64_t low, high;
  };
  std::uint64_t low() const { return std::bit_cast<Words>(*this).low; }
  std::uint64_t high() const { return std::bit_cast<Words>(*this).high; }
};
static_assert(sizeof(LedgerKey) == 16);

// Packs the key with shifts, since bytes stored one by one and read as words defeat store
// forwarding. Little-endian, as every machine with CUDA is.
constexpr LedgerKey::Words key_words(std::uint8_t function, Bucket bucket, std::uint8_t dtype,
                                     Mode mode, std::int8_t bytes_class, std::uint32_t comm,
                                     std::uint32_t graph,
                                     HostMemory host_memory = HostMemory::unknown) {
  return {std::uint64_t{function} | std::uint64_t{static_cast<std::uint8_t>(bucket)} << 8 |
              std::uint64_t{dtype} << 16 | std::uint64_t{static_cast<std::uint8_t>(mode)} << 24 |
              std::uint64_t{static_cast<std::uint8_t>(bytes_class)} << 32 |
              std::uint64_t{static_cast<std::uint8_t>(host_memory)} << 56,
          std::uint64_t{comm} | std::uint64_t{graph} << 32};
}

// Returns the key of the row of kind `kind` that belongs to `key`. A waiting row holds calls of an
// open group that have no record, so they count as unfinished, not as unknown, if the process dies
// in the group.
constexpr LedgerKey::Words beside(LedgerKey::Words key, RowKind kind) {
  return {key.low | std::uint64_t{static_cast<std::uint8_t>(kind)} << 40, key.high};
}
constexpr LedgerKey::Words waiting(LedgerKey::Words key) {
  return beside(key, RowKind::waiting);
}
constexpr LedgerKey::Words timed(LedgerKey::Words key) {
  return beside(key, RowKind::timed);
}
// Adds the kind of the calls' thread, for rows in another thread's ledger.
constexpr LedgerKey::Words of_thread(LedgerKey::Words key, ThreadKind kind) {
  return {key.low | std::uint64_t{static_cast<std::uint8_t>(kind)} << 48, key.high};
}

struct LedgerValues {
  std::uint64_t calls;        // accepted by the library
  std::uint64_t count;        // sum of the API's count; copies: bytes; kMetaSignature: signature
  std::uint64_t host_ns;      // sum of the durations of the host calls
  std::uint64_t host_ns_max;  // the longest
  std::uint64_t failed;       // refused, or in a group that failed or was simulated
};

struct LedgerSlot {
  std::uint64_t txn;
  LedgerValues values;
};

struct alignas(64) LedgerRow {
  // The key as two words: `high` is written first, `low` (never 0 once set) publishes the row.
  std::atomic<std::uint64_t> key_low;
  std::uint64_t key_high;
  LedgerSlot slot[2];
};
static_assert(sizeof(LedgerRow) == 128);

inline std::int8_t bytes_class(std::uint64_t bytes) {
  return static_cast<std::int8_t>(std::bit_width(bytes) - 1);
}

inline LedgerKey key_of(const LedgerRow& row) {
  const std::uint64_t words[2] = {row.key_low.load(std::memory_order_acquire), row.key_high};
  LedgerKey key;
  std::memcpy(&key, words, sizeof key);
  return key;
}

// Returns the values of the last committed transaction. `committed` belongs to the row's thread. If
// the thread commits during the read, the slots are read again.
inline LedgerValues read_row(const LedgerRow& row, const std::atomic<std::uint64_t>& committed) {
  for (;;) {
    const std::uint64_t seen = committed.load(std::memory_order_acquire);
    const auto a = copy_in_use(row.slot[0]);
    const auto b = copy_in_use(row.slot[1]);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (committed.load(std::memory_order_relaxed) != seen) continue;
    const bool a_valid = a.txn != 0 && a.txn <= seen;
    const bool b_valid = b.txn != 0 && b.txn <= seen;
    if (a_valid && (!b_valid || a.txn > b.txn)) return a.values;
    return b_valid ? b.values : LedgerValues{};
  }
}

// Changes the values of `row` in transaction `txn` (`committed` + 1): f(from, to) sets all of `to`,
// which may be `from`. It copies field by field: one load of two fields that were stored separately
// waits until both are in the cache.
template <typename F>
[[gnu::always_inline]] inline void change(LedgerRow& row, std::uint64_t txn, F&& f) {
  LedgerSlot* newer = &row.slot[1];
  LedgerSlot* changed = &row.slot[0];
  if (changed->txn > newer->txn) std::swap(newer, changed);
  if (newer->txn == txn) [[unlikely]]
    changed = newer;
  f(std::as_const(newer->values), changed->values);
  // The slot must not look newer until it is whole; after that, `committed` protects it.
  std::atomic_signal_fence(std::memory_order_release);
  std::atomic_ref<std::uint64_t>(changed->txn).store(txn, std::memory_order_release);
}

// Returns the values that `txn` may change, for callers that change them in place.
inline LedgerValues& open_slot(LedgerRow& row, std::uint64_t txn) {
  LedgerValues* open = nullptr;
  change(row, txn, [&](const LedgerValues& from, LedgerValues& to) {
    to = from;
    open = &to;
  });
  return *open;
}

// The signature of a communicator: the wrapping sum of mix() over its collectives, so it does not
// depend on which thread made which call. Each thread keeps partial sums in ledger rows of
// kMetaSignature, one per bin of sequence numbers: bin k holds seq in [2^(k-1), 2^k), bin 0 holds
// seq 0. The prefix sums over the bins are the contract's marks.
inline int signature_bin(std::uint64_t seq) {
  return static_cast<int>(std::bit_width(seq));
}

// `name` is the hash of the function's name, since function numbers differ between versions of
// tprof. Two multiplications instead of three rounds of mix64(): a call waits for this chain at its
// end (12 ns less).
constexpr std::uint64_t signature_mix(std::uint64_t seq, std::uint64_t name, std::uint64_t count,
                                      std::uint8_t dtype, std::int32_t root, std::uint8_t reduce) {
  const std::uint64_t h = fold_product(seq ^ name, count ^ 0x9e3779b97f4a7c15ULL);
  return fold_product(h ^ (std::uint64_t{dtype} << 40) ^ (std::uint64_t{reduce} << 48) ^
                          static_cast<std::uint32_t>(root),
                      0xbf58476d1ce4e5b9ULL);
}

}  // namespace tprof
