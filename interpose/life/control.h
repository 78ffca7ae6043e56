// Executes requests of `tprof ctl`, on the writer's thread.
#pragma once

#include "interpose/write/output.h"

namespace tprof::control {

// Call this when everything recorded before is in the rank file. Answers the executed request, in
// the trace and to the requester, then executes a new one, which the next call answers. Without
// requests it only compares two words.
void follow(Output& output);

void after_fork();

}  // namespace tprof::control
