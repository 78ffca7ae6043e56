// Reads the host's GPUs on a thread of its own: if a driver hangs, NVML hangs too, and the lanes of
// the host have to go on.
#pragma once

#include <cstdint>

#include "read/node_metrics.h"

namespace tprof::node {

struct GpuReading {
  std::uint32_t device;
  GpuMetrics metrics;
};

// Starts that thread, which loads NVML and reads all devices every so often, from `first_ns` on.
// Returns a pipe that gives one GpuReading at a time, and its end if there will be no more; -1: it
// could not be started.
int begin_gpus(std::uint64_t every_ns, std::uint64_t first_ns);

}  // namespace tprof::node
