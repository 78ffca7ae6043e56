// What the driver tells about devices and memory. Its answers never touch the runtime's last error.
#pragma once

#include <cstddef>

#include "interpose/format/buckets.h"

namespace tprof::driver {

// The current device of the calling thread; `otherwise` where the driver does not tell.
int current_device(int otherwise);

// Of a copy between two addresses. Null is the symbol of cudaMemcpyToSymbol/FromSymbol: on the
// device.
Bucket direction(const void* dst, const void* src);

// Bytes of one element of `array` (a cudaArray_t, which is a CUarray). 0: not known; then `format`
// is the CUarray_format that it has.
std::size_t array_element_bytes(const void* array, unsigned& format);

}  // namespace tprof::driver
