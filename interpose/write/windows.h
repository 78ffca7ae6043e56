// Does what TPROF_SCHEDULE's windows stand for besides lines. Calls are timed in them only, and
// profilers are switched on at their beginning and off at their end (TPROF_CUDA_PROFILER). The
// program's own switch opens and closes them (TPROF_SCHEDULE=profiler), or `tprof ctl` does.
#pragma once

#include <cstdint>

#include "interpose/format/control.h"

namespace tprof::windows {

// begin() runs with the session, before calls are timed, and end() when the session ends.
void begin();
void end();
void after_fork();

// Call this when the writer's thread has seen what there is to see. `state` in the mapped file says
// what is on.
void follow();

// True while windows depend on the step: the writer then has to look often, since little of one may
// pass before calls are timed.
bool watch_steps();

// Carry out `tprof ctl` start, stop and window, on the writer's thread. If lines were written all
// along, what came until then becomes the first window.
Obeyed open_by_hand();
Obeyed close_by_hand();
Obeyed open_for_steps(std::uint32_t steps, std::uint64_t first);

// The program has called cudaProfilerStart or cudaProfilerStop, maybe before any session.
void switched(bool on);

}  // namespace tprof::windows
