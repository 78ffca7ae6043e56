// Counts NCCL calls that no wrapper saw. NCCL has an NVTX range for each call, however it was
// called. If the range begins outside any wrapper, the call bypassed us.
#pragma once

#include "interpose/api/functions.h"

namespace tprof::missed {

// NCCL's ranges arrive here: from now on a count of 0 missed calls is meaningful.
void watch();

// A range of NCCL begins, or ends, on this thread. `fn` is Fn::none for functions that are not
// wrapped. Both return the level of the range, from 0. Budget: 2 ns for a wrapped call.
int range_begins(Fn fn);
int range_ends();

// Call this when the session has begun: stores the counts in `head`.
void publish(Head& head);

}  // namespace tprof::missed
