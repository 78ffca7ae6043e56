// The sink of a drain, which also sees the closed records that the drain takes from the rings. The
// drain makes the lines itself. (No virtual functions: the library stands on libc alone.)
#pragma once

#include <cstdint>

#include "interpose/base/text.h"
#include "interpose/format/ring_file.h"

namespace tprof {

// No sink: for readers, who see only the end of a process.
struct NoSink {
  // Called before a pass over the rings, which begins where `p` stands. `last`: all closed records
  // are wanted now.
  void begin(const Progress& /*p*/, bool /*last*/) {}
  // Returns how far the pass goes in a thread's records.
  static std::uint64_t limit(std::uint32_t /*thread*/) { return UINT64_MAX; }
  // Called for each closed record but those of ranges and counters, in the order of its thread.
  void record(const Record& /*r*/, const ThreadArea& /*t*/) {}
  // Called at the end of the pass, for lines that follow from it.
  void end(Text& /*out*/, Progress& /*p*/) {}
};

}  // namespace tprof
