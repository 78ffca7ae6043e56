// A sink of the writer: something that it looks after besides the calls' lines. Here are all the
// turns that a sink may take; a sink hides those that it has something to do in.
#pragma once

#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/format/metrics.h"

namespace tprof {

class LineBatch;

// A session begins with these.
struct SinkStart {
  int snapshot;  // the file beside the rank file, or -1
  MetricsWanted metrics;
  std::uint64_t now_ns;
};

struct Sink {
  void begin(LineBatch& /*lines*/, const SinkStart& /*start*/) {}
  // Whenever the calls' lines are written, and at least after sleep_ms().
  void tick(LineBatch& /*lines*/, const ClockAnchor& /*now*/) {}
  std::uint32_t sleep_ms(std::uint64_t /*now_ns*/) const { return UINT32_MAX; }
  // All calls have their lines, and the rank file gets its end next.
  void at_end(LineBatch& /*lines*/, std::uint64_t /*now_ns*/) {}
  // The rank file is closed.
  void closed() {}
  // A forked child calls this: files are the parent's.
  void leave() {}
};

}  // namespace tprof
