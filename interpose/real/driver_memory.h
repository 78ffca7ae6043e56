// Asks the driver about devices and memory, which never changes the runtime's last error.
#pragma once

#include <cstddef>

#include "interpose/format/buckets.h"
#include "interpose/format/host_memory.h"

namespace tprof::driver {

// Returns the calling thread's current device, or `otherwise` if the driver does not answer.
int current_device(int otherwise);

// The direction of a copy between two addresses, and the kind of host memory, if known.
struct Direction {
  Bucket bucket;
  HostMemory host = HostMemory::unknown;
};
// A null address is the symbol of cudaMemcpyToSymbol/FromSymbol, which is on the device.
Direction direction(const void* dst, const void* src);

// Returns what the driver knows about a host address of a copy: `pageable` if it does not know the
// memory, `unknown` if it does not answer (no context yet, or a fork).
HostMemory host_memory(const void* address);

// Returns the device of memory known to CUDA, or `otherwise` if the driver does not answer.
int device_of(const void* address, int otherwise);

}  // namespace tprof::driver
