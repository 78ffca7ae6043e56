// Writes the program's ranges and counters into the calling thread's ring.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/ranges.h"
#include "interpose/record/ring.h"
#include "interpose/record/thread.h"

namespace tprof::marks {

// Within a wrapper, or a signal handler that interrupts one, ranges are not the program's.
inline bool within_a_call() {
  return !t_thread.at_rest();
}

// Returns the calling thread if it can record now, else null.
Thread* present();

// Ranges leave half of the ring to calls.
bool has_room(const Thread& t, std::uint32_t records);

// Names the lane for readers, before its first range.
void name_lane(Thread& t);

// Writes consecutive records, for which there must be room: each is `first` with its part of
// `bytes`. Wakes the writer when ranges fill a quarter of the ring.
void write_records(Thread& t, const RangeRecord& first, const char* bytes, std::uint32_t records);

void count_drop(Transaction& transaction, RangeDropped reason);
void drop(Thread& t, RangeDropped reason);

// Gives atomic access to a field that readers check.
inline std::atomic_ref<std::uint64_t> shared(std::uint64_t& field) {
  return std::atomic_ref(field);
}

}  // namespace tprof::marks
