// Call sites (TPROF_CALLSITE): the number in a call's record, and its table entry.
//
// A known site costs a table lookup (70 instructions) and a walk over the thread's frames. Native
// frames take 10 ns each (265 ns for 24), Python frames 115 ns for 14. A new site takes our lock
// and the loader's (its object list's and dladdr's), and is stored. A thread's first call from any
// place takes the list's lock, too. So a library constructor may make calls, but must not wait for
// another thread's first call from a place.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/sites.h"
#include "interpose/record/switches.h"

namespace tprof::sites {

inline bool on() {
  return g_switches.sites.load(std::memory_order_relaxed);
}

// Returns the site of this thread's call with return address `caller`. 0: there is none, for
// example because the table is full.
[[gnu::cold, gnu::noinline]] std::uint16_t site_of(const void* caller);

void begin(CallSite what);  // with the session
void after_fork();          // in the child

}  // namespace tprof::sites
