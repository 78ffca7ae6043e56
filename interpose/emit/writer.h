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

// The thread's other duties.
struct Duties {
  void (*whenever_it_wakes)();
  void (*when_all_is_written)(Output&);  // that was recorded before it woke
  void (*before_it_sleeps)();
  void (*before_it_closes)();
};

// Starts the thread, with all signals blocked. `fd`: the rank file; `offset`: bytes that are in it;
// `snapshot`: the file beside it, or -1. False: it could not be made.
bool start(const View& view, int fd, std::uint64_t offset, int snapshot, const Duties& duties,
           const MetricsWanted& wanted);

void wake();

// Waits until all that was recorded before is in the file, as far as the disk takes it. False: not
// in time.
bool flush(std::uint32_t timeout_ms);

// Notes that an epoch of the counts has ended with this line of the ledger. Returns at once.
void end_epoch(std::string_view ledger);

// Writes what is left and closes the array, on the calling thread. At exit that thread has to wait
// anyway, and the writer's own, at nice 10, may be kept from running by the program's threads. May
// be called again, if calls came after. False: it failed, or another thread's write took
// `timeout_ms`.
bool close_file(std::uint32_t timeout_ms);

// Does the same on the writer's thread, for a caller about which nothing is known: takes no lock.
// go_on(): the process has not ended after all.
bool close_on_its_thread(std::uint32_t timeout_ms);
void go_on();

void after_fork();  // in the child: there is no such thread

}  // namespace tprof::writer
