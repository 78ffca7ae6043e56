// Puts what the program tells into the calling thread's ring.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/ranges.h"
#include "interpose/record/ring.h"
#include "interpose/record/thread.h"

namespace tprof::marks {

// Within a wrapper or in a signal handler that interrupts one, ranges are not the program's own.
inline bool within_a_call() {
  return !t_thread.at_rest();
}

// Returns the calling thread if what it does now can be recorded, else null.
Thread* present();

// Ranges leave half of the ring to calls.
bool has_room(const Thread& t, std::uint32_t records);

// Tells readers the name of the lane, before its first range.
void name_lane(Thread& t);

// Writes records one after the other, for which there is room. Each is `first`, with its part of
// `bytes`. They wake the writer when they have a quarter of the ring.
void write_records(Thread& t, const RangeRecord& first, const char* bytes, std::uint32_t records);

void count_drop(Transaction& transaction, RangeDropped reason);
void drop(Thread& t, RangeDropped reason);

// Gives atomic access to a field that readers go by.
inline std::atomic_ref<std::uint64_t> shared(std::uint64_t& field) {
  return std::atomic_ref(field);
}

}  // namespace tprof::marks
