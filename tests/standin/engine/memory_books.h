// Counts the bytes that this process was asked to allocate, current and peak: per device, pinned
// and managed. TPROF_MEMORY's tests compare with it, since it shares no code with interpose/. The
// counts are in a mapped file, memory-<pid> in $STANDIN_MEMORY, so that a SIGKILL loses nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace standin::memory_books {

void add(cudaMemoryType type, int device, int64_t bytes);  // negative: freed

}  // namespace standin::memory_books
