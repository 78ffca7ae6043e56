// Where calls come from (TPROF_CALLSITE): the number that goes into a call's record, and the table
// entry behind it.
//
// A known site costs a look into a table (70 instructions) and a walk over the thread's frames.
// Native frames take 10 ns each (265 ns for 24), Python's 115 ns for 14. A new site takes a lock
// and the loader's locks (of its list of objects, and dladdr's), and is written down. A thread's
// first call from somewhere takes the list's, too. So a constructor that the loader runs may make
// calls itself, but must not wait for another thread's first call from somewhere.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/sites.h"
#include "interpose/record/switches.h"

namespace tprof::sites {

inline bool on() {
  return g_switches.sites.load(std::memory_order_relaxed);
}

// Returns the site of a call that returns to `caller`, made by this thread. 0: there is none, as
// when the table is full.
[[gnu::cold, gnu::noinline]] std::uint16_t site_of(const void* caller);

void begin(CallSite what);  // with the session
void after_fork();          // in the child

}  // namespace tprof::sites
