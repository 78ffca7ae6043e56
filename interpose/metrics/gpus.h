// Reads the host's GPUs on a thread of its own: if a driver hangs, NVML hangs too, and the writer
// has to go on.
#pragma once

#include <cstdint>

#include "interpose/format/metrics.h"

namespace tprof::metrics::gpus {

// Starts that thread, which loads NVML. This happens once in a process, and not in a child of one
// that did it: what the parent opened can't be used there.
void begin(std::uint64_t every_ns);

// Gets the newest reading of a device. False: there is none, or no such device.
bool newest(std::uint32_t device, GpuMetrics& to);

// From here on NVML is not called, since exit handlers take it down. A call that does not return is
// left alone after 200 ms.
void end();

void after_fork();

}  // namespace tprof::metrics::gpus
