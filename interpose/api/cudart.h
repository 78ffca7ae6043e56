// The CUDA runtime functions that copy between host and device: the one list from which wrappers,
// names and the coverage report follow.
//
// X(function, twin, (parameters), (arguments), (how the arguments read as CopyArgs))
//   twin  the name that programs compiled with --default-stream=per-thread call instead
//
// Their prototypes are the same in CUDA 11, 12 and 13 (cudart is versioned by soname). The ones
// whose are not (cudaMemcpyBatchAsync, cudaMemcpy3DBatchAsync, cudaMemPrefetchAsync) stay
// unwrapped: a wrapper of the wrong prototype would corrupt its caller.
#pragma once

#define TPROF_CUDART_COPY(X)                                                                       \
  X(cudaMemcpy, cudaMemcpy_ptds, (void* dst, const void* src, size_t count, cudaMemcpyKind kind),  \
    (dst, src, count, kind),                                                                       \
    ({.dst = dst, .src = src, .bytes = count, .kind = kind, .stream = nullptr, .sync = true}))     \
  X(cudaMemcpyAsync, cudaMemcpyAsync_ptsz,                                                         \
    (void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream),          \
    (dst, src, count, kind, stream),                                                               \
    ({.dst = dst, .src = src, .bytes = count, .kind = kind, .stream = stream, .sync = false}))     \
  X(cudaMemcpy2D, cudaMemcpy2D_ptds,                                                               \
    (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,        \
     cudaMemcpyKind kind),                                                                         \
    (dst, dpitch, src, spitch, width, height, kind),                                               \
    ({.dst = dst,                                                                                  \
      .src = src,                                                                                  \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz,                                                     \
    (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,        \
     cudaMemcpyKind kind, cudaStream_t stream),                                                    \
    (dst, dpitch, src, spitch, width, height, kind, stream),                                       \
    ({.dst = dst,                                                                                  \
      .src = src,                                                                                  \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = stream,                                                                            \
      .sync = false}))                                                                             \
  X(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds,                                                   \
    (const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind),       \
    (symbol, src, count, offset, kind),                                                            \
    ({.dst = nullptr, .src = src, .bytes = count, .kind = kind, .stream = nullptr, .sync = true})) \
  X(cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz,                                         \
    (const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind,        \
     cudaStream_t stream),                                                                         \
    (symbol, src, count, offset, kind, stream),                                                    \
    ({.dst = nullptr, .src = src, .bytes = count, .kind = kind, .stream = stream, .sync = false})) \
  X(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds,                                               \
    (void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind),             \
    (dst, symbol, count, offset, kind),                                                            \
    ({.dst = dst, .src = nullptr, .bytes = count, .kind = kind, .stream = nullptr, .sync = true})) \
  X(cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz,                                     \
    (void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,              \
     cudaStream_t stream),                                                                         \
    (dst, symbol, count, offset, kind, stream),                                                    \
    ({.dst = dst, .src = nullptr, .bytes = count, .kind = kind, .stream = stream, .sync = false}))

// The same without a twin: X(function, (parameters), (arguments), (reading)).
#define TPROF_CUDART_COPY_PEER(X)                                                                  \
  X(cudaMemcpyPeer, (void* dst, int dstDevice, const void* src, int srcDevice, size_t count),      \
    (dst, dstDevice, src, srcDevice, count),                                                       \
    ({.dst = dst,                                                                                  \
      .src = src,                                                                                  \
      .bytes = count,                                                                              \
      .kind = cudaMemcpyDeviceToDevice,                                                            \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpyPeerAsync,                                                                           \
    (void* dst, int dstDevice, const void* src, int srcDevice, size_t count, cudaStream_t stream), \
    (dst, dstDevice, src, srcDevice, count, stream),                                               \
    ({.dst = dst,                                                                                  \
      .src = src,                                                                                  \
      .bytes = count,                                                                              \
      .kind = cudaMemcpyDeviceToDevice,                                                            \
      .stream = stream,                                                                            \
      .sync = false}))

// What copies and graphs depend on; bodies in hook/cudart_{memory,graph}.cpp.
// clang-format off
#define TPROF_CUDART_MEMORY(X)                                                  \
  X(cudaSetDevice) X(cudaHostAlloc) X(cudaMallocHost) X(cudaFreeHost)           \
  X(cudaHostRegister) X(cudaHostUnregister) X(cudaMallocManaged) X(cudaFree)
#define TPROF_CUDART_GRAPH(X)                                                   \
  X(cudaStreamBeginCapture) X(cudaStreamBeginCapture_ptsz)                      \
  X(cudaStreamBeginCaptureToGraph) X(cudaStreamBeginCaptureToGraph_ptsz)        \
  X(cudaStreamEndCapture) X(cudaStreamEndCapture_ptsz)                          \
  X(cudaGraphInstantiate) X(cudaGraphInstantiateWithFlags)                      \
  X(cudaGraphInstantiateWithParams) X(cudaGraphInstantiateWithParams_ptsz)      \
  X(cudaGraphLaunch) X(cudaGraphLaunch_ptsz)                                    \
  X(cudaGraphDestroy) X(cudaGraphExecDestroy)
// Through which programs get at the driver's functions; bodies in hook/entry_point.cpp.
#define TPROF_CUDART_ENTRY(X)                                                   \
  X(cudaGetDriverEntryPoint) X(cudaGetDriverEntryPoint_ptsz)                    \
  X(cudaGetDriverEntryPointByVersion) X(cudaGetDriverEntryPointByVersion_ptsz)
// clang-format on
