// The call that a thread is in, or those that its group issues together, as device/ times it.
#pragma once

#include <cstdint>

#include "interpose/format/ring_file.h"

namespace tprof {

namespace device {

// Calls of one ledger row that have one time together. Most often it is one call. `mixed`: calls of
// several rows, as a group may have; the key is that of the first, and no row gets their time.
struct Calls {
  LedgerKey::Words key;
  std::uint64_t calls;
  std::uint64_t count;          // sum of the API's counts
  std::uint64_t seq;            // of the first call
  std::uint64_t host_ns;        // when that call began
  std::uint32_t tid;            // the thread that made it
  bool computes = false;        // a graph, or a copy in a stream that computes
  std::uint64_t waited_ns = 0;  // for devices, since the last call that was timed: set by stop()
  bool mixed = false;           // a group of several kinds of calls
};

}  // namespace device

struct TimedCall {
  void* held = nullptr;  // what the mode of timing holds for it; null: not timed
  bool lost = false;     // it was to be timed and is not, as `why` says
  TimingLost why{};
  bool computes = false;  // work of a stream that computes: a graph, or a copy there
};

}  // namespace tprof
