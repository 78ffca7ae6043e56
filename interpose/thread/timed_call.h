// The call that a thread is in, or those that its group issues together, as timing/ times it.
#pragma once

#include <cstdint>

#include "interpose/format/ring_file.h"

namespace tprof {

namespace timing {
struct Pair;
}

struct TimedCall {
  timing::Pair* pair = nullptr;  // null: not timed
  bool lost = false;             // it was to be timed and is not, as `why` says
  TimingLost why{};
  std::uint64_t cupti = 0;  // the number by which CUPTI knows it; 0: none
  bool computes = false;    // work of a stream that computes: a graph, or a copy there
};

}  // namespace tprof
