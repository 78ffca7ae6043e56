// Counts calls of NCCL that no wrapper saw. NCCL tells of each call by an NVTX range, however the
// call came to it. A range that begins outside of any wrapper is a call that passed us by.
#pragma once

#include "interpose/api/functions.h"

namespace tprof::missed {

// An NCCL tells its ranges to us: from now on it means something if none was missed.
void watch();

// A range of NCCL's begins, or ends, on this thread. `fn` is Fn::none if it is no wrapped function.
// Both return the level of the range, from 0. Budget: 2 ns for a call that was wrapped.
int range_begins(Fn fn);
int range_ends();

// Call this when the session has begun: what is known goes into `head`.
void publish(Head& head);

}  // namespace tprof::missed
