// A thread's changes to its ledger and records, valid as a whole or not at all.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/ledger.h"
#include "interpose/record/thread.h"

namespace tprof {

// Returns the row of `key` in this thread's ledger or, if that is full, its bucket's row for all
// others (kOtherFunctions).
[[gnu::cold, gnu::noinline]] LedgerRow& find_row(Thread& t, LedgerKey::Words key);
// The same, but null if it has no row of its own.
LedgerRow* find_own_row(Thread& t, LedgerKey::Words key);
// Returns what `row` adds for a call of this key and API count: elements, if it is a row for
// others.
[[gnu::cold, gnu::noinline]] std::uint64_t count_in(const LedgerRow& row, LedgerKey::Words key,
                                                    std::uint64_t count);

inline bool is_of(const LedgerRow& row, const LedgerKey::Words& key) {
  return row.key_low.load(std::memory_order_relaxed) == key.low && row.key_high == key.high;
}

[[gnu::always_inline]] inline LedgerRow*& cached_row(Thread& t, LedgerKey::Words key) {
  return t.row[((key.low + key.high) * 0x9e3779b97f4a7c15ULL) >> 59];
}

// Prefetches the row in which a call will most likely be counted, so that it arrives while the real
// call runs: if the program's work has evicted it, counting would wait for it. Returns that row, or
// null.
[[gnu::always_inline]] inline LedgerRow* expect_row(Thread& t, LedgerKey::Words key) {
  LedgerRow* row = cached_row(t, key);
  __builtin_prefetch(row, 1);
  __builtin_prefetch(&row->slot[1].values, 1);
  return row;
}

// `expected`: see expect_row(). `count`: the call's API count; converted if the row is one for
// others.
[[gnu::always_inline]] inline LedgerRow& row_of(Thread& t, LedgerRow* expected,
                                                const LedgerKey::Words& key, std::uint64_t& count) {
  if (expected != nullptr && is_of(*expected, key)) [[likely]]
    return *expected;
  LedgerRow& row = find_row(t, key);
  cached_row(t, key) = &row;
  count = count_in(row, key, count);
  return row;
}
inline LedgerRow& row_of(Thread& t, LedgerKey::Words key, std::uint64_t& count) {
  return row_of(t, cached_row(t, key), key, count);
}
static_assert(Thread::kCachedRows == 32);

// Called after the release store of `committed` or `head`, which readers of the running process
// check. Later stores go to places that this store made obsolete (the row's other slot, the
// record's place, the record outside the ring), and must not be visible before it. A reader that
// finds `committed` or `head` unchanged after an acquire fence has then read nothing newer. In the
// C++ memory model: if the reader has read a store made after this fence, the two fences
// synchronize, so loads after the reader's fence see the stores before this one. No instruction on
// x86-64, where stores stay in order; `dmb ish` on aarch64.
[[gnu::always_inline]] inline void after_publishing() {
  std::atomic_thread_fence(std::memory_order_release);
}

// One change of this thread's ledger and records. The destructor commits it as a whole.
class [[nodiscard]] Transaction : NotCopied {
 public:
  explicit Transaction(Thread& t) : t_(t), number_(t.committed + 1) { after_publishing(); }
  ~Transaction() {
    t_.committed = number_;
    t_.area->committed.store(number_, std::memory_order_release);
    if (t_.late) [[unlikely]]
      session::late_call();
  }

  std::uint64_t number() const { return number_; }
  [[gnu::always_inline]] LedgerValues& values(LedgerKey::Words key) {
    std::uint64_t count = 0;
    return values(key, count);
  }
  LedgerValues& values(LedgerKey::Words key, std::uint64_t& count) {
    return open_slot(row_of(t_, key, count), number_);
  }
  LedgerRow* expected(LedgerKey::Words key) const { return cached_row(t_, key); }
  // f(from, to, count): see ledger.h. `count` is what the row adds, see count_in().
  template <typename F>
  [[gnu::always_inline]] void change(LedgerRow* expected, const LedgerKey::Words& key,
                                     std::uint64_t count, F&& f) {
    LedgerRow& row = row_of(t_, expected, key, count);
    tprof::change(row, number_,
                  [&](const LedgerValues& from, LedgerValues& to) { f(from, to, count); });
  }
  LedgerValues& values(LedgerRow& row) { return open_slot(row, number_); }
  void close(Record& r) {
    std::atomic_ref<std::uint64_t>(r.txn).store(number_, std::memory_order_release);
  }

 private:
  Thread& t_;
  std::uint64_t number_;
};

// The next record of a thread's ring, and room for more.

// True if the ring has a place for the next record. Updates `room_until`, and wakes the writer if
// the ring is half full.
[[gnu::cold, gnu::noinline]] bool more_room(Thread& t);

// Makes `r` an open record with the calling thread's name.
[[gnu::cold]] void fill_thread_name(Record& r, std::uint32_t tid);

// Returns the place for the next record: in the ring, or outside it if the ring is full or the call
// gets no line. `in_ring` says which.
[[gnu::always_inline]] inline Record& next_record(Thread& t, bool wants_line, bool& in_ring) {
  in_ring = wants_line && (t.head < t.room_until || more_room(t));
  if (in_ring) {
    after_publishing();
    return t.ring[t.head & t.mask];
  }
  Record& outside = t.area->outside_ring;
  // Hidden while it is filled: a kill must not leave a mix of two calls.
  outside.function = kMetaVoid;
  after_publishing();
  return outside;
}

// Makes an open record visible. It must be complete except for txn (0) and the call's outcome.
[[gnu::always_inline]] inline void publish(Thread& t, Record& r, std::uint8_t function,
                                           bool in_ring) {
  std::atomic_ref<std::uint8_t>(r.function).store(function, std::memory_order_release);
  if (in_ring) t.area->head.store(++t.head, std::memory_order_release);
}

}  // namespace tprof
