// What this process was asked to allocate: bytes now and at most, by device, pinned and managed.
// The other side of TPROF_MEMORY's tests, by code that shares nothing with interpose/. Kept in a
// mapped file, memory-<pid> in $STANDIN_MEMORY, so that a SIGKILL loses nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace standin::memory_books {

void add(cudaMemoryType type, int device, int64_t bytes);  // less: below 0

}  // namespace standin::memory_books
