// Obeys `tprof ctl`, on the writer's thread.
#pragma once

#include "interpose/write/output.h"

namespace tprof::control {

// Call this when all that was recorded before is in the rank file. It answers the request that was
// obeyed, in the trace and to whoever asked. Then it obeys a new request, which it answers when it
// is called again. If nothing was asked, it only compares two words.
void follow(Output& output);

void after_fork();

}  // namespace tprof::control
