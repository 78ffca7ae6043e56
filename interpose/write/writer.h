// The writer's thread: it wakes, lets the output take what the rings hold, and sleeps.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/format/metrics.h"
#include "interpose/format/view.h"

namespace tprof {
class Output;
}

namespace tprof::writer {

// The files that a session has on disk.
struct Files {
  int lines;           // the rank file, with its first lines
  int snapshot = -1;   // the file beside it, if there is one
  bool later = false;  // there are none yet, since the process has no descriptor left
};

// The thread's other duties.
struct Duties {
  bool (*makes_files)(Files&);  // false, and not `later`: there will be none, and the thread ends
  void (*whenever_it_wakes)();
  void (*when_all_is_written)(Output&);  // that was recorded before it woke
  void (*before_it_sleeps)();
  void (*before_it_closes)();
  void (*when_it_has_closed)();
};

// Starts the thread, with all signals blocked. It makes the files first, after `delay_ms`, unless
// somebody wakes it. False: it could not be made.
bool start(const View& view, const Duties& duties, const MetricsWanted& wanted,
           std::uint32_t delay_ms);

// Waits for them for 1 ms: where nothing is slow, they are there when the first call returns.
void wait_for_files();

void wake();

// Waits until all that was recorded before is in the file, as far as the disk takes it. False: not
// in time.
bool flush(std::uint32_t timeout_ms);

// Notes that an epoch of the counts has ended with this line of the ledger. Returns at once.
void end_epoch(std::string_view ledger);

// Has what is left written and the array closed, on the writer's thread, and waits for that until
// then. Takes no lock: nothing is known about the caller. May be called again, if calls came after.
// go_on(): the process has not ended after all.
void close(std::uint64_t until_ns);
void go_on();

void after_fork();  // in the child: there is no such thread

}  // namespace tprof::writer
