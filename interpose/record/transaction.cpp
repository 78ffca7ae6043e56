#include "interpose/record/transaction.h"

#include <sys/prctl.h>

#include <cstring>

#include "interpose/base/lock.h"
#include "interpose/format/scopes.h"

namespace tprof {
namespace {

bool claim(LedgerRow& row, LedgerKey::Words key) {
  if (row.key_low.load(std::memory_order_relaxed) != 0) return false;
  row.key_high = key.high;
  row.key_low.store(key.low, std::memory_order_release);
  return true;
}

LedgerRow* own_row(Thread& t, LedgerKey::Words key) {
  const Mapping& m = session::mapping();
  const auto [low, high] = key;
  const std::uint64_t hash = mix64(low ^ mix64(high));
  for (std::uint32_t level = 0; level < kLedgerLevels; ++level) {
    const std::uint32_t rows = ledger_level_rows(level);
    std::atomic<std::uint64_t>& offset = t.area->level[level];
    if (offset == 0) {
      const std::uint64_t made = session::mapping().allocate(rows * sizeof(LedgerRow));
      offset = made == 0 ? kNoLevel : made;
    }
    if (offset == kNoLevel) return nullptr;
    auto* table = m.at<LedgerRow>(offset);
    for (std::uint32_t n = 0; n < kLedgerProbe; ++n) {
      LedgerRow& row = table[(hash + n) % rows];
      if (is_of(row, key) || claim(row, key)) return &row;
    }
  }
  return nullptr;
}

// Returns the reduced key for a call that finds no row of its own: there are at most kOtherRows of
// them, and each bucket's sums stay exact.
LedgerKey::Words other_key(LedgerKey::Words words) {
  const auto key = std::bit_cast<LedgerKey>(words);
  LedgerKey other{};
  other.bucket = key.bucket;
  other.mode = key.mode;
  other.kind = key.kind;
  other.bytes_class = -1;
  const bool executed = key.mode == Mode::direct;
  const bool sums_up = key.kind == RowKind::counted || key.kind == RowKind::timed;
  if (key.function < kMaxDataFunctions) {
    other.dtype = is_copy(key.bucket)   ? kDtypeByte
                  : executed && sums_up ? key.dtype
                                        : kDtypeUnknown;
  } else {
    other.function = key.function;
  }
  if (key.function == kMetaRangeDropped) other.bytes_class = key.bytes_class;
  if (key.function == kMetaScope) {
    const bool amounts = key.dtype == static_cast<std::uint8_t>(ScopeRow::amounts);
    other.comm = kMaxScopes;  // the number for other names
    other.dtype = static_cast<std::uint8_t>(amounts ? ScopeRow::amounts : ScopeRow::unbinned);
  }
  return std::bit_cast<LedgerKey::Words>(other);
}

LedgerRow& other_row(Thread& t, LedgerKey::Words key) {
  auto* row = session::mapping().at<LedgerRow>(t.area->level[0]) + ledger_level_rows(0);
  LedgerRow* const last = row + kOtherRows - 1;
  while (row != last && !is_of(*row, key) && !claim(*row, key)) ++row;
  return *row;
}

}  // namespace

LedgerRow* find_own_row(Thread& t, LedgerKey::Words key) {
  return own_row(t, key);
}

LedgerRow& find_row(Thread& t, LedgerKey::Words key) {
  LedgerRow* own = own_row(t, key);
  return own != nullptr ? *own : other_row(t, other_key(key));
}

std::uint64_t count_in(const LedgerRow& row, LedgerKey::Words words, std::uint64_t count) {
  const auto key = std::bit_cast<LedgerKey>(words);
  if (is_of(row, words) || is_copy(key.bucket) || key.function >= kMaxDataFunctions) return count;
  const View view = session::mapping().view();
  return amount(view, key.function, key.bucket, key.dtype, key.comm, count).elements;
}

bool more_room(Thread& t) {
  const std::uint64_t capacity = t.mask + 1;
  const std::uint64_t tail = t.area->tail.load(std::memory_order_acquire);
  const bool half_full = t.head - tail >= capacity / 2;
  t.room_until = tail + (half_full ? capacity : capacity / 2);
  const bool room = t.head < t.room_until;
  if (half_full && room) session::wake_writer();
  return room;
}

void fill_thread_name(Record& r, std::uint32_t tid) {
  char name[kThreadNameBytes] = {};
  prctl(PR_GET_NAME, name);
  r = {};
  r.count = tid;
  std::memcpy(&r.stream, name, sizeof name);
}

}  // namespace tprof
