// A thread's changes to its ledger and records, each valid as a whole or not at all.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/ledger.h"
#include "interpose/thread/thread.h"

namespace tprof {

// Returns the row of `key` in this thread's ledger. There always is one: see the overflow row in
// transaction.cpp.
[[gnu::cold, gnu::noinline]] LedgerRow& find_row(Thread& t, LedgerKey::Words key);

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

[[gnu::always_inline]] inline LedgerRow& row_of(Thread& t, LedgerKey::Words key) {
  LedgerRow*& cached = cached_row(t, key);
  if (cached == nullptr || cached->key_low.load(std::memory_order_relaxed) != key.low ||
      cached->key_high != key.high) [[unlikely]] {
    cached = &find_row(t, key);
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
    return open_slot(row_of(t_, key), number_);
  }
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
