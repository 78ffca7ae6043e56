// Reads the host's GPUs on a separate thread, since NVML hangs if a driver does, and the host's
// lanes have to go on.
#pragma once

#include <cstdint>

#include "read/node_metrics.h"

namespace tprof::node {

struct GpuReading {
  std::uint32_t device;
  GpuMetrics metrics;
};

// Starts that thread, which loads NVML and reads all devices every `every_ns` from `first_ns` on.
// Returns a pipe of GpuReadings, which ends if there will be no more; -1: failed.
int begin_gpus(std::uint64_t every_ns, std::uint64_t first_ns);

}  // namespace tprof::node
