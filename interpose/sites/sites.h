// Where calls come from (TPROF_CALLSITE): the number that goes into a call's record, and the table
// entry behind it.
//
// A site that was seen before costs a look into a table (70 instructions) and, for Python, a walk
// over the thread's frames (115 ns for 14); a new one takes a lock and the loader's, and is written
// down.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/sites.h"
#include "interpose/thread/extras.h"

namespace tprof::sites {

inline bool on() {
  return g_extras.sites.load(std::memory_order_relaxed);
}

// Of a call that returns to `caller`, made by this thread. 0: none, the table is full.
[[gnu::cold, gnu::noinline]] std::uint16_t site_of(const void* caller);

void begin(CallSite what);  // with the session
void after_fork();          // in the child

}  // namespace tprof::sites
