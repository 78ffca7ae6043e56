// A thread's ring of records: the place of the next one, and room for more.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/record/thread.h"
#include "interpose/record/transaction.h"

namespace tprof {

// True if the ring has a place for the next record. Updates `room_until`, and wakes the writer if
// the ring is half full.
[[gnu::cold, gnu::noinline]] bool more_room(Thread& t);

// Returns the offset of a new area with its ledger's first level and a ring; 0: no memory.
std::uint64_t allocate_area(std::uint32_t ring_records);

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
