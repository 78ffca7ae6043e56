// What follows from TPROF_SCHEDULE's windows besides lines: calls are timed in them only, profilers
// are switched on at their beginning and off at their end (TPROF_CUDA_PROFILER), and the program's
// own switch opens and closes them (TPROF_SCHEDULE=profiler), or `tprof ctl` does.
#pragma once

#include <cstdint>

#include "interpose/format/control.h"

namespace tprof::windows {

// With the session, before calls are timed; and when it ends.
void begin();
void end();
void after_fork();

// The writer's thread has seen what there is to see: `state` in the mapped file says what is on.
void follow();

// `tprof ctl` start, stop and window, on the writer's thread. Where lines were written all along,
// what there is until then becomes the first window.
Obeyed open_by_hand();
Obeyed close_by_hand();
Obeyed open_for_steps(std::uint32_t steps, std::uint64_t first);

// The program has called cudaProfilerStart or cudaProfilerStop, maybe before any session.
void switched(bool on);

}  // namespace tprof::windows
