// Who else sees what the drain takes from the rings: what a sink of closed records is. Lines are
// what the drain makes itself. (No virtual functions: the library stands on libc alone.)
#pragma once

#include <cstdint>

#include "interpose/base/text.h"
#include "interpose/format/ring_file.h"

namespace tprof {

// None: as for readers, who see the end of a process only.
struct NoSink {
  // Before a pass over the rings, from where `p` stands. `last`: all that is closed is wanted now.
  void begin(const Progress& /*p*/, bool /*last*/) {}
  // Up to which of a thread's records the pass goes.
  static std::uint64_t limit(std::uint32_t /*thread*/) { return UINT64_MAX; }
  // One that is closed, in the order of its thread: a call, or a graph launch.
  void record(const Record& /*r*/, const ThreadArea& /*t*/) {}
  // The pass has come to its end: lines that follow from it.
  void end(Text& /*out*/, Progress& /*p*/) {}
};

}  // namespace tprof
