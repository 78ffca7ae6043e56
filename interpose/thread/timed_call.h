// The call that a thread is in, or those that its group issues together, as timing/ times it.
#pragma once

#include <cstdint>

#include "interpose/format/ring_file.h"

namespace tprof {

struct TimedCall {
  void* held = nullptr;  // what the mode of timing holds for it; null: not timed
  bool lost = false;     // it was to be timed and is not, as `why` says
  TimingLost why{};
  bool computes = false;  // work of a stream that computes: a graph, or a copy there
};

}  // namespace tprof
