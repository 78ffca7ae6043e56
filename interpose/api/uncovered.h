// Functions of the newest NCCL, CUDA runtime and CUDA driver that move data, or seem to by name,
// and are not wrapped: X(library, function, reason). The plain name includes variants that are not
// wrapped (_ptsz, _ptds, _v2). A test compares this list with the export lists and headers; `tprof
// coverage` prints it.
#pragma once

// clang-format off
#define TPROF_CUDART_UNCOVERED(X)                                                                                      \
  X(cudart, cudaGraphAddMemcpyNode, "copies of explicitly added nodes are reported")                                   \
  X(cudart, cudaGraphAddMemcpyNode1D, "copies of explicitly added nodes are reported")                                 \
  X(cudart, cudaGraphAddMemcpyNodeToSymbol, "copies of explicitly added nodes are reported")                           \
  X(cudart, cudaGraphAddMemcpyNodeFromSymbol, "copies of explicitly added nodes are reported")                         \
  X(cudart, cudaGraphMemcpyNodeGetParams, "asks")                                                                      \
  X(cudart, cudaGraphKernelNodeCopyAttributes, "copies settings, no data")                                             \
  X(cudart, cudaStreamCopyAttributes, "copies settings, no data")

#define TPROF_CUDA_UNCOVERED(X)                                                                                        \
  X(cuda, cuGraphAddMemcpyNode, "copies of explicitly added nodes are reported")                                       \
  X(cuda, cuMemBatchDecompressAsync, "decompresses within the device")                                                 \
  X(cuda, cuMemcpyHtoD, "of CUDA before 3.2, with addresses of 32 bits")                                               \
  X(cuda, cuMemcpyHtoDAsync, "of CUDA before 3.2, with addresses of 32 bits")                                          \
  X(cuda, cuMemcpyDtoH, "of CUDA before 3.2, with addresses of 32 bits")                                               \
  X(cuda, cuMemcpyDtoHAsync, "of CUDA before 3.2, with addresses of 32 bits")                                          \
  X(cuda, cuMemcpyDtoD, "of CUDA before 3.2, with addresses of 32 bits")                                               \
  X(cuda, cuMemcpyDtoDAsync, "of CUDA before 3.2, with addresses of 32 bits")                                          \
  X(cuda, cuMemcpyDtoA, "of CUDA before 3.2, with addresses of 32 bits")                                               \
  X(cuda, cuMemcpyAtoD, "of CUDA before 3.2, with addresses of 32 bits")                                               \
  X(cuda, cuMemcpyHtoA, "of CUDA before 3.2, with addresses of 32 bits")                                               \
  X(cuda, cuMemcpyHtoAAsync, "of CUDA before 3.2, with addresses of 32 bits")                                          \
  X(cuda, cuMemcpyAtoH, "of CUDA before 3.2, with addresses of 32 bits")                                               \
  X(cuda, cuMemcpyAtoHAsync, "of CUDA before 3.2, with addresses of 32 bits")                                          \
  X(cuda, cuMemcpyAtoA, "of CUDA before 3.2, with addresses of 32 bits")                                               \
  X(cuda, cuMemcpy2D, "of CUDA before 3.2, with addresses of 32 bits")                                                 \
  X(cuda, cuMemcpy2DAsync, "of CUDA before 3.2, with addresses of 32 bits")                                            \
  X(cuda, cuMemcpy2DUnaligned, "of CUDA before 3.2, with addresses of 32 bits")                                        \
  X(cuda, cuMemcpy3D, "of CUDA before 3.2, with addresses of 32 bits")                                                 \
  X(cuda, cuMemcpy3DAsync, "of CUDA before 3.2, with addresses of 32 bits")                                            \
  X(cuda, cuGraphMemcpyNodeGetParams, "asks")                                                                          \
  X(cuda, cuGraphKernelNodeCopyAttributes, "copies settings, no data")                                                 \
  X(cuda, cuStreamCopyAttributes, "copies settings, no data")
// clang-format on
