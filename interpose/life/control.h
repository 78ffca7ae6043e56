// Obeys `tprof ctl`, on the writer's thread.
#pragma once

#include "interpose/emit/output.h"

namespace tprof::control {

// All that was recorded before is in the rank file: says what was obeyed, in the trace and to who
// asked. And obeys what was asked since, of which it says so when it is called again. Where nothing
// was asked: a load of a word.
void follow(Output& output);

void after_fork();

}  // namespace tprof::control
