// Asks the driver about devices and memory. Its answers never touch the runtime's last error.
#pragma once

#include <cstddef>

#include "interpose/format/buckets.h"
#include "interpose/format/host_memory.h"

namespace tprof::driver {

// Returns the current device of the calling thread, or `otherwise` if the driver does not tell.
int current_device(int otherwise);

// The direction of a copy between two addresses, and what memory its host side is, if it has one
// and the driver tells.
struct Direction {
  Bucket bucket;
  HostMemory host = HostMemory::unknown;
};
// A null address is the symbol of cudaMemcpyToSymbol/FromSymbol, which is on the device.
Direction direction(const void* dst, const void* src);

// Returns what the driver knows about an address that a copy takes for the host's: `pageable` if it
// knows no such memory, `unknown` if it does not answer (no context yet, or a fork).
HostMemory host_memory(const void* address);

// Returns the device of memory that CUDA knows, or `otherwise` if the driver does not tell.
int device_of(const void* address, int otherwise);

}  // namespace tprof::driver
