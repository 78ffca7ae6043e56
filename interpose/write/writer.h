// The writer's thread: it wakes, writes the contents of the rings, and sleeps.
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
  int lines;          // the rank file, with its first lines
  int snapshot = -1;  // the file beside it, if there is one
};

// The thread's other duties.
struct Duties {
  bool (*makes_files)(Files&);           // false: there will be none, and the thread ends
  void (*when_all_is_written)(Output&);  // everything recorded before it woke
  void (*when_it_has_closed)();
};

// Starts the thread, with all signals blocked. It makes the files first, after `delay_ms` or when
// woken. Returns false if it could not be started.
bool start(const View& view, const Duties& duties, const MetricsWanted& wanted,
           std::uint32_t delay_ms);

// Waits up to 1 ms for the files, so that they usually exist when the first call returns.
void wait_for_files();

void wake();

// Waits until everything recorded before is in the file, if the disk takes it. Returns false on a
// timeout.
bool flush(std::uint32_t timeout_ms);

// Notes that an epoch has ended with this ledger line. Returns at once.
void end_epoch(std::string_view ledger);

// Has the writer's thread write the rest and close the array, and waits for it until `until_ns`.
// Takes no lock, since the caller may be anywhere. May be called again after later calls.
void close(std::uint64_t until_ns);

void after_fork();  // in the child: there is no such thread

}  // namespace tprof::writer
