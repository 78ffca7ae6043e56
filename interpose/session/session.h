// The life of tracing in one process: lazy start at the first call that counts, fork, exit.
// The only state that rooms share.
#pragma once

#include <atomic>
#include <cstdint>

#include "config.h"
#include "mapping.h"

namespace tprof::session {

// 0: off (disabled, or something of ours failed). Otherwise the number of the session, which a
// fork changes: what a thread has cached from another session is void.
extern std::atomic<std::uint32_t> g_number;

inline bool off() {
  return g_number.load(std::memory_order_relaxed) == 0;
}

// Starts the session of this process if it has none yet: reads the settings, creates the files,
// starts the writer. False: tracing is off. About 1 ms, once; other threads wait for it.
[[gnu::cold]] bool start();
bool started();

Mapping& mapping();
const Config& config();

// Fewer records than half a ring are free: the writer should not sleep on.
void wake_writer();

// The exit handlers have closed the file. Calls may still come: those of static destructors, each
// of which has the file closed once more, behind it; and those of threads that exit() does not
// stop. The latter are not recorded: the process may end in the middle of closing for them.
bool closed();
bool in_exiting_thread();
[[gnu::cold]] void late_call();

// A communicator was made, so whatever else moves data may have been loaded by now.
[[gnu::cold]] void look_around();

}  // namespace tprof::session
