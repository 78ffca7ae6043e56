// Calls of NCCL that no wrapper saw: NCCL tells of each call by an NVTX range, however the call
// came to it. A range that begins outside of any wrapper is a call that passed us by.
#pragma once

#include "interpose/api/functions.h"

namespace tprof::missed {

// Ranges of an NCCL arrive here: that none was missed means something from now on.
void watch();

// A range of NCCL's begins and ends on this thread; `fn`: Fn::none where it is no wrapped function.
// The level of the range, from 0. Budget: 2 ns for a call that was wrapped.
int range_begins(Fn fn);
int range_ends();

// The session has begun: what is known goes there.
void publish(Head& head);

}  // namespace tprof::missed
