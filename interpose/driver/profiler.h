// The switch of profilers that watch the process (nsys --capture-range=cudaProfilerApi).
#pragma once

namespace tprof::profiler_driver {

// In the primary contexts that the program has; none is made. May take as long as a profiler wants.
void set(bool on);

}  // namespace tprof::profiler_driver
