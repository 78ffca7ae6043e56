// A thread's changes to its ledger and records, each valid as a whole or not at all.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/ledger.h"
#include "interpose/record/thread.h"

namespace tprof {

// Returns the row of `key` in this thread's ledger or, if it has room for no further one, the row
// of others of its bucket (kOtherFunctions).
[[gnu::cold, gnu::noinline]] LedgerRow& find_row(Thread& t, LedgerKey::Words key);
// The same, but null if it has no row of its own.
LedgerRow* find_own_row(Thread& t, LedgerKey::Words key);
// Returns what `row` adds for a call of this key and API count: elements, if it is that of others.
[[gnu::cold, gnu::noinline]] std::uint64_t count_in(const LedgerRow& row, LedgerKey::Words key,
                                                    std::uint64_t count);

inline bool is_of(const LedgerRow& row, LedgerKey::Words key) {
  return row.key_low.load(std::memory_order_relaxed) == key.low && row.key_high == key.high;
}

[[gnu::always_inline]] inline LedgerRow*& cached_row(Thread& t, LedgerKey::Words key) {
  return t.row[((key.low + key.high) * 0x9e3779b97f4a7c15ULL) >> 59];
}

// Asks for the lines of a row that the call will be counted in, so that they come while the real
// call runs. Where the program's own work has emptied the caches, they are what counting waits for.
[[gnu::always_inline]] inline void expect_row(Thread& t, LedgerKey::Words key) {
  const LedgerRow* row = cached_row(t, key);
  if (row == nullptr) return;
  __builtin_prefetch(row, 1);
  __builtin_prefetch(&row->slot[1].values, 1);
}

// `count`: the API's, of a call that is to be added; changed if the row is that of others.
[[gnu::always_inline]] inline LedgerRow& row_of(Thread& t, LedgerKey::Words key,
                                                std::uint64_t& count) {
  LedgerRow*& cached = cached_row(t, key);
  if (cached == nullptr || !is_of(*cached, key)) [[unlikely]] {
    cached = &find_row(t, key);
    count = count_in(*cached, key, count);
  }
  return *cached;
}
static_assert(Thread::kCachedRows == 32);

// Called behind the release store of `committed` or `head`, by which readers of the running process
// go: the release orders it behind what came before. The stores that follow go to places that it
// made old (the row's other slot, the record's place, the record outside the ring). They must not
// be seen before it. A reader that finds `committed` or `head` unchanged, behind an acquire fence,
// has then read nothing that is newer. By the C++ memory model: if the reader has read a store
// behind this fence, the two fences synchronise. So loads behind the reader's fence see what was
// stored before this one. No instruction on x86-64, whose stores stay in order; `dmb ish` on
// aarch64.
[[gnu::always_inline]] inline void after_publishing() {
  std::atomic_thread_fence(std::memory_order_release);
}

// One change to this thread's ledger and records, which its destructor commits as a whole.
class [[nodiscard]] Transaction {
 public:
  explicit Transaction(Thread& t) : t_(t) {
    if (t.shared || t.late) [[unlikely]]
      begin_special();
    number_ = t.area->committed.load(std::memory_order_relaxed) + 1;
    after_publishing();
  }
  ~Transaction() {
    t_.area->committed.store(number_, std::memory_order_release);
    if (t_.shared || t_.late) [[unlikely]]
      end_special();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  std::uint64_t number() const { return number_; }
  [[gnu::always_inline]] LedgerValues& values(LedgerKey::Words key) {
    std::uint64_t count = 0;
    return values(key, count);
  }
  [[gnu::always_inline]] LedgerValues& values(LedgerKey::Words key, std::uint64_t& count) {
    return open_slot(row_of(t_, key, count), number_);
  }
  LedgerValues& values(LedgerRow& row) { return open_slot(row, number_); }
  void close(Record& r) {
    std::atomic_ref<std::uint64_t>(r.txn).store(number_, std::memory_order_release);
  }

 private:
  void begin_special();
  void end_special();

  Thread& t_;
  std::uint64_t number_;
};

}  // namespace tprof
