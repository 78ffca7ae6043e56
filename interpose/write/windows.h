// The effects of TPROF_SCHEDULE's windows besides lines: calls are timed only in windows, and
// profilers run from their beginning to their end (TPROF_CUDA_PROFILER). cudaProfilerStart and Stop
// (TPROF_SCHEDULE=profiler) or `tprof ctl` open and close them.
#pragma once

#include <cstdint>

#include "interpose/format/control.h"

namespace tprof::windows {

// begin() runs with the session, before calls are timed, and end() when the session ends.
void begin();
void end();
void after_fork();

// Call this after each pass of the writer's thread. Applies `state` of the mapped file.
void follow();

// True while windows depend on steps: the writer then has to wake often, so that calls are timed
// soon after a step begins.
bool watch_steps();

// Execute `tprof ctl` start, stop and window, on the writer's thread. If lines were written without
// windows so far, that time becomes the first window.
Obeyed open_by_hand();
Obeyed close_by_hand();
Obeyed open_for_steps(std::uint32_t steps, std::uint64_t first);

// The program has called cudaProfilerStart or cudaProfilerStop, perhaps before any session.
void switched(bool on);

}  // namespace tprof::windows
