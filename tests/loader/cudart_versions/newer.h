// Two functions whose arguments changed before, as they are in CUDA 13, and one of the most
// arguments among those that only pass.
#pragma once

#include <cuda_runtime_api.h>

extern "C" {
cudaError_t copies(void* const* dsts, const void* const* srcs, const size_t* sizes, size_t count,
                   cudaMemcpyAttributes*, size_t* indices, size_t attributes_count,
                   cudaStream_t) __asm__("cudaMemcpyBatchAsync");
cudaError_t prefetch(const void* address, size_t size, cudaMemLocation, unsigned flags,
                     cudaStream_t) __asm__("cudaMemPrefetchAsync");
cudaError_t nine(void*, size_t, size_t, const void*, size_t, size_t, size_t, size_t,
                 int kind) __asm__("cudaMemcpy2DArrayToArray");
}

// Only this library has it: the sum of the arguments that arrived.
extern "C" unsigned long long last_arguments();
