// The copies of the per-thread default stream, which have no declaration of their own in C.
#pragma once

#include <cuda_runtime_api.h>

extern "C" {
decltype(cudaMemcpy) cudaMemcpy_ptds;
decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
decltype(cudaMemcpy2D) cudaMemcpy2D_ptds;
decltype(cudaMemcpy2DAsync) cudaMemcpy2DAsync_ptsz;
decltype(cudaMemcpy3D) cudaMemcpy3D_ptds;
decltype(cudaMemcpy3DAsync) cudaMemcpy3DAsync_ptsz;
decltype(cudaMemcpyToSymbol) cudaMemcpyToSymbol_ptds;
decltype(cudaMemcpyToSymbolAsync) cudaMemcpyToSymbolAsync_ptsz;
decltype(cudaMemcpyFromSymbol) cudaMemcpyFromSymbol_ptds;
decltype(cudaMemcpyFromSymbolAsync) cudaMemcpyFromSymbolAsync_ptsz;
cudaError_t cudaMemcpyBatchAsync_ptsz(void* const*, const void* const*, const size_t*, size_t,
                                      cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t);
decltype(cudaMemPrefetchAsync) cudaMemPrefetchAsync_ptsz;
}
