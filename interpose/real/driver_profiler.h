// Switches profilers that watch the process (nsys --capture-range=cudaProfilerApi).
#pragma once

namespace tprof::profiler_driver {

// Switches them in the primary contexts that the program has; none is made. This may take as long
// as a profiler wants.
void set(bool on);

}  // namespace tprof::profiler_driver
