// What the driver tells about devices and memory. Its answers never touch the runtime's last error.
#pragma once

#include <cstddef>

#include "interpose/format/buckets.h"
#include "interpose/format/host_memory.h"

namespace tprof::driver {

// The current device of the calling thread; `otherwise` where the driver does not tell.
int current_device(int otherwise);

// Of a copy between two addresses, and what the host's side of it is, where it has one and the
// driver tells.
struct Direction {
  Bucket bucket;
  HostMemory host = HostMemory::unknown;
};
// Null is the symbol of cudaMemcpyToSymbol/FromSymbol: on the
// device.
Direction direction(const void* dst, const void* src);

// What the driver knows of an address that a copy takes for the host's: `pageable` where it knows
// no such memory, unknown where it does not answer (no context yet, or a fork).
HostMemory host_memory(const void* address);

// The device of memory that CUDA knows; `otherwise` where it does not tell.
int device_of(const void* address, int otherwise);

// Bytes of one element of `array` (a cudaArray_t, which is a CUarray). 0: not known; then `format`
// is the CUarray_format that it has.
std::size_t array_element_bytes(const void* array, unsigned& format);

}  // namespace tprof::driver
