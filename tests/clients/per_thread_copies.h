// The copies of the per-thread default stream, which have no declaration of their own in C.
#pragma once

#include <cuda_runtime_api.h>

// The one-dimensional copies of arrays are deprecated, but every version exports them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

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
decltype(cudaMemcpy3DPeer) cudaMemcpy3DPeer_ptds;
decltype(cudaMemcpy3DPeerAsync) cudaMemcpy3DPeerAsync_ptsz;
decltype(cudaMemcpy2DToArray) cudaMemcpy2DToArray_ptds;
decltype(cudaMemcpy2DFromArray) cudaMemcpy2DFromArray_ptds;
decltype(cudaMemcpy2DToArrayAsync) cudaMemcpy2DToArrayAsync_ptsz;
decltype(cudaMemcpy2DFromArrayAsync) cudaMemcpy2DFromArrayAsync_ptsz;
decltype(cudaMemcpy2DArrayToArray) cudaMemcpy2DArrayToArray_ptds;
decltype(cudaMemcpyToArray) cudaMemcpyToArray_ptds;
decltype(cudaMemcpyToArrayAsync) cudaMemcpyToArrayAsync_ptsz;
decltype(cudaMemcpyFromArray) cudaMemcpyFromArray_ptds;
decltype(cudaMemcpyFromArrayAsync) cudaMemcpyFromArrayAsync_ptsz;
decltype(cudaMemcpyArrayToArray) cudaMemcpyArrayToArray_ptds;
decltype(cudaMemcpy3DBatchAsync) cudaMemcpy3DBatchAsync_ptsz;
cudaError_t cudaMemcpyBatchAsync_ptsz(void* const*, const void* const*, const size_t*, size_t,
                                      cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t);
decltype(cudaMemPrefetchAsync) cudaMemPrefetchAsync_ptsz;
cudaError_t cudaMemPrefetchBatchAsync_ptsz(void**, size_t*, size_t, cudaMemLocation*, size_t*,
                                           size_t, unsigned long long, cudaStream_t);
cudaError_t cudaMemDiscardAndPrefetchBatchAsync_ptsz(void**, size_t*, size_t, cudaMemLocation*,
                                                     size_t*, size_t, unsigned long long,
                                                     cudaStream_t);
}
