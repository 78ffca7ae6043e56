// Functions of the newest NCCL, CUDA runtime and CUDA driver that move data, or whose name says so,
// and that no row of the tables wraps: X(library, function, reason). If a function has twins and
// versions (_ptsz, _ptds, _v2), the plain name stands for all that no row wraps. A test holds this
// list against the export lists and the headers; `tprof coverage` prints it.
#pragma once

// clang-format off
#define TPROF_CUDART_UNCOVERED(X)                                                                                      \
  X(cudart, cudaGraphAddMemcpyNode, "copies that are put into a graph by hand are told")                               \
  X(cudart, cudaGraphAddMemcpyNode1D, "copies that are put into a graph by hand are told")                             \
  X(cudart, cudaGraphAddMemcpyNodeToSymbol, "copies that are put into a graph by hand are told")                       \
  X(cudart, cudaGraphAddMemcpyNodeFromSymbol, "copies that are put into a graph by hand are told")                     \
  X(cudart, cudaGraphMemcpyNodeGetParams, "asks")                                                                      \
  X(cudart, cudaGraphKernelNodeCopyAttributes, "copies settings, no data")                                             \
  X(cudart, cudaStreamCopyAttributes, "copies settings, no data")

#define TPROF_CUDA_UNCOVERED(X)                                                                                        \
  X(cuda, cuGraphAddMemcpyNode, "copies that are put into a graph by hand are told")                                   \
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
