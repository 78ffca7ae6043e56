// Readings of the host's GPUs, by a thread of their own: where a driver hangs NVML hangs too, and
// the writer has to go on.
#pragma once

#include <cstdint>

#include "interpose/format/metrics.h"

namespace tprof::metrics::gpus {

// Loads NVML on that thread. Once in a process, and not in a child of one that did it: what the
// parent opened can't be used there.
void begin(std::uint64_t every_ns);

// The newest reading of a device; false: there is none, or no such device.
bool newest(std::uint32_t device, GpuMetrics& to);

// From here on NVML is not called: exit handlers take it down. A call that does not return is left
// alone after 200 ms.
void end();

void after_fork();

}  // namespace tprof::metrics::gpus
