// The CUDA runtime functions that copy between host and device: the one list from which wrappers,
// names and the coverage report follow.
//
// Each row is X_TWIN(function, twin, since, ...) or, for a function without a twin, X(function,
// since, ...).
//   twin   the name that programs compiled with --default-stream=per-thread call instead (CUDA 7.0)
//   since  the first CUDA that has the function, of 3.2 and later, by CUPTI's list of the runtime's
//          functions (cupti_runtime_cbid.h) and the headers of 12.9 to 13.2
//
// Their prototypes are the same in CUDA 11, 12 and 13 (cudart is versioned by soname). Those of
// TPROF_CUDART_BATCH below are not.
//
// Copies: X_TWIN(..., (parameters), (arguments), (how the arguments read as CopyArgs))
#pragma once

#define TPROF_CUDART_COPY(X_TWIN)                                                                  \
  X_TWIN(cudaMemcpy, cudaMemcpy_ptds, 3020,                                                        \
         (void* dst, const void* src, size_t count, cudaMemcpyKind kind), (dst, src, count, kind), \
         ({dst, src, count, kind, nullptr, true}))                                                 \
  X_TWIN(cudaMemcpyAsync, cudaMemcpyAsync_ptsz, 3020,                                              \
         (void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream),     \
         (dst, src, count, kind, stream), ({dst, src, count, kind, stream, false}))                \
  X_TWIN(cudaMemcpy2D, cudaMemcpy2D_ptds, 3020,                                                    \
         (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,   \
          cudaMemcpyKind kind),                                                                    \
         (dst, dpitch, src, spitch, width, height, kind),                                          \
         ({dst, src, width * height, kind, nullptr, true}))                                        \
  X_TWIN(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz, 3020,                                          \
         (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,   \
          cudaMemcpyKind kind, cudaStream_t stream),                                               \
         (dst, dpitch, src, spitch, width, height, kind, stream),                                  \
         ({dst, src, width * height, kind, stream, false}))                                        \
  X_TWIN(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds, 3020,                                        \
         (const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind),  \
         (symbol, src, count, offset, kind), ({nullptr, src, count, kind, nullptr, true}))         \
  X_TWIN(cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz, 3020,                              \
         (const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind,   \
          cudaStream_t stream),                                                                    \
         (symbol, src, count, offset, kind, stream), ({nullptr, src, count, kind, stream, false})) \
  X_TWIN(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds, 3020,                                    \
         (void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind),        \
         (dst, symbol, count, offset, kind), ({dst, nullptr, count, kind, nullptr, true}))         \
  X_TWIN(cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz, 3020,                          \
         (void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,         \
          cudaStream_t stream),                                                                    \
         (dst, symbol, count, offset, kind, stream), ({dst, nullptr, count, kind, stream, false})) \
  /* A box in or of an array counts as 0 bytes (real/copy_args.h). */                              \
  X_TWIN(cudaMemcpy3D, cudaMemcpy3D_ptds, 3020, (const cudaMemcpy3DParms* p), (p),                 \
         ({region_copy(p, nullptr, true)}))                                                        \
  X_TWIN(cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz, 3020,                                          \
         (const cudaMemcpy3DParms* p, cudaStream_t stream), (p, stream),                           \
         ({region_copy(p, stream, false)}))

// The same between devices.
#define TPROF_CUDART_COPY_PEER(X)                                                                  \
  X(cudaMemcpyPeer, 4000,                                                                          \
    (void* dst, int dstDevice, const void* src, int srcDevice, size_t count),                      \
    (dst, dstDevice, src, srcDevice, count),                                                       \
    ({dst, src, count, cudaMemcpyDeviceToDevice, nullptr, true}))                                  \
  X(cudaMemcpyPeerAsync, 4000,                                                                     \
    (void* dst, int dstDevice, const void* src, int srcDevice, size_t count, cudaStream_t stream), \
    (dst, dstDevice, src, srcDevice, count, stream),                                               \
    ({dst, src, count, cudaMemcpyDeviceToDevice, stream, false}))

// Calls that make many copies: X_TWIN(..., (parameters), (arguments), (how they read as a Batch)).
// Their prototypes differ between versions of CUDA. Every argument is passed on as a RawArg, even
// one that only some versions have: a library without it ignores what is in its place. The
// arguments are interpreted by `cuda`, the version of the library that serves the call.
#define TPROF_CUDART_BATCH(X_TWIN)                                                              \
  X_TWIN(                                                                                       \
      cudaMemcpyBatchAsync, cudaMemcpyBatchAsync_ptsz, 12080,                                   \
      (RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg attributes, RawArg indices, \
       RawArg attributes_count, RawArg eighth, RawArg ninth),                                   \
      (dsts, srcs, sizes, count, attributes, indices, attributes_count, eighth, ninth),         \
      (copies_12(reinterpret_cast<const void*>(real), dsts, srcs, sizes, count, eighth, ninth)))

// Functions that affect copies: X(function, since); bodies in hook/memory.cpp.
// clang-format off
#define TPROF_CUDART_MEMORY(X) \
  X(cudaSetDevice, 3020) \
  X(cudaHostAlloc, 3020) \
  X(cudaMallocHost, 3020) \
  X(cudaFreeHost, 3020) \
  X(cudaHostRegister, 4000) \
  X(cudaHostUnregister, 4000) \
  X(cudaMallocManaged, 6000) \
  X(cudaFree, 3020) \
  X(cudaDeviceReset, 3020)

// Functions that allocate and free, looked at with TPROF_MEMORY=1 only (and the seven above):
// X(..., (parameters), (arguments), (what it is, see hook/memory.cpp))
//   meant(stream) is the stream that a function and its twin mean by 0
#define TPROF_CUDART_ALLOCATION(X, X_TWIN)                                                              \
  X(cudaMalloc, 3020, (void** pointer, size_t size), (pointer, size), (Allocates{pointer, size})) \
  X(cudaMallocPitch, 3020, (void** pointer, size_t* pitch, size_t width, size_t height),        \
    (pointer, pitch, width, height), (Allocates{pointer, width * height}))                      \
  X(cudaMalloc3D, 3020, (cudaPitchedPtr * pitched, cudaExtent extent), (pitched, extent),       \
    (Allocates{pitched, extent.width * extent.height * extent.depth})) \
  X_TWIN(cudaMallocAsync, cudaMallocAsync_ptsz, 11020,                                               \
    (void** pointer, size_t size, cudaStream_t stream), (pointer, size, stream),                \
    (allocates_on(meant(stream), pointer, size)))                                               \
  X_TWIN(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz, 11020,                               \
    (void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream),                     \
    (pointer, size, pool, stream), (allocates_on(meant(stream), pointer, size)))                \
  X_TWIN(cudaFreeAsync, cudaFreeAsync_ptsz, 11020, (void* pointer, cudaStream_t stream),             \
    (pointer, stream), (frees_on(meant(stream), key_of(pointer))))

// Functions through which programs reach the driver's: X(function, since); bodies in
// hook/entry_point.cpp.
#define TPROF_CUDART_ENTRY(X) \
  X(cudaGetDriverEntryPoint, 11030) \
  X(cudaGetDriverEntryPoint_ptsz, 11030) \
  X(cudaGetDriverEntryPointByVersion, 12050) \
  X(cudaGetDriverEntryPointByVersion_ptsz, 12050)
// clang-format on

// Captures, CUDA graphs and their launches:
// X(..., kind, (parameters), (arguments), (what it tells, see hook/graph.cpp))
//   kind  TYPED: declared as the vendor's header declares it, where it does. ANY: its prototype
//         differs between versions of CUDA, or headers that we build with lack a type of it; every
//         argument is passed on as it travels. CUDA 11 gives cudaGraphInstantiate five arguments,
//         later versions three, whose third is the flags; cudaGraphExecUpdate four, later versions
//         three
//   meant(stream) is the stream that a function and its twin mean by 0
#define TPROF_CUDART_GRAPH(X, X_TWIN)                                                              \
  X_TWIN(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz, 10000, TYPED,                        \
         (cudaStream_t stream, cudaStreamCaptureMode mode), (stream, mode),                        \
         (CaptureBegins{meant(stream), false}))                                                    \
  X_TWIN(cudaStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph_ptsz, 12030, ANY,            \
         (cudaStream_t stream, cudaGraph_t graph, void* after, void* edges, size_t n,              \
          cudaStreamCaptureMode mode),                                                             \
         (stream, graph, after, edges, n, mode), (CaptureBegins{meant(stream), true}))             \
  X_TWIN(cudaStreamBeginRecaptureToGraph, cudaStreamBeginRecaptureToGraph_ptsz, 13030, ANY,        \
         (cudaStream_t stream, cudaStreamCaptureMode mode, cudaGraph_t graph, void* callback),     \
         (stream, mode, graph, callback), (CaptureBegins{meant(stream), false}))                   \
  X_TWIN(cudaStreamEndCapture, cudaStreamEndCapture_ptsz, 10000, TYPED,                            \
         (cudaStream_t stream, cudaGraph_t * graph), (stream, graph),                              \
         (CaptureEnds{meant(stream)}))                                                             \
  X_TWIN(cudaGraphInstantiateWithParams, cudaGraphInstantiateWithParams_ptsz, 12000, ANY,          \
         (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long* params),            \
         (executable, graph, params), (Instantiates{executable, graph, params ? *params : 0}))     \
  X_TWIN(cudaGraphLaunch, cudaGraphLaunch_ptsz, 10000, TYPED,                                      \
         (cudaGraphExec_t executable, cudaStream_t stream), (executable, stream),                  \
         (LaunchesGraph{executable, meant(stream)}))                                               \
  X(cudaGraphInstantiate, 10000, ANY,                                                              \
    (cudaGraphExec_t * executable, cudaGraph_t graph, void* third, void* fourth, size_t fifth),    \
    (executable, graph, third, fourth, fifth), (Instantiates{executable, graph, flags_in(third)})) \
  X(cudaGraphInstantiateWithFlags, 11040, TYPED,                                                   \
    (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),                   \
    (executable, graph, flags), (Instantiates{executable, graph, flags}))                          \
  X(cudaGraphExecUpdate, 10020, ANY,                                                               \
    (cudaGraphExec_t executable, cudaGraph_t graph, void* third, void* fourth),                    \
    (executable, graph, third, fourth), (Updates{executable, graph}))                              \
  X(cudaGraphDestroy, 10000, TYPED, (cudaGraph_t graph), (graph), (Destroys{graph}))               \
  X(cudaGraphExecDestroy, 10000, TYPED, (cudaGraphExec_t executable), (executable),                \
    (Destroys{executable}))

// Calls that keep streams busy, or in which streams or threads wait: X(..., (parameters),
// (arguments), (what it is, see hook/follow.cpp)). Followed only with TPROF_TIMING=events.
#define TPROF_CUDART_FOLLOW(X, X_TWIN)                                                             \
  X_TWIN(cudaLaunchKernel, cudaLaunchKernel_ptsz, 7000,                                            \
         (const void* kernel, dim3 grid, dim3 block, void** parameters, size_t shared,             \
          cudaStream_t stream),                                                                    \
         (kernel, grid, block, parameters, shared, stream), (Launches{meant(stream)}))             \
  /* nvcc's code calls this since 12.8. */                                                         \
  X_TWIN(__cudaLaunchKernel, __cudaLaunchKernel_ptsz, 12080,                                       \
         (void* kernel, dim3 grid, dim3 block, void** parameters, size_t shared,                   \
          cudaStream_t stream),                                                                    \
         (kernel, grid, block, parameters, shared, stream), (Launches{meant(stream)}))             \
  X_TWIN(cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz, 11060,                                     \
         (const cudaLaunchConfig_t* config, const void* kernel, void** parameters),                \
         (config, kernel, parameters), (Launches{meant(config->stream)}))                          \
  X_TWIN(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz, 9000,                      \
         (const void* kernel, dim3 grid, dim3 block, void** parameters, size_t shared,             \
          cudaStream_t stream),                                                                    \
         (kernel, grid, block, parameters, shared, stream), (Launches{meant(stream)}))             \
  X_TWIN(cudaEventRecord, cudaEventRecord_ptsz, 3020, (cudaEvent_t event, cudaStream_t stream),    \
         (event, stream), (Records{meant(stream)}))                                                \
  X_TWIN(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz, 11010,                           \
         (cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, stream, flags),     \
         (Records{meant(stream)}))                                                                 \
  X_TWIN(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz, 3020,                                      \
         (cudaStream_t stream, cudaEvent_t event, unsigned int flags), (stream, event, flags),     \
         (StreamWaits{meant(stream)}))                                                             \
  X_TWIN(cudaStreamSynchronize, cudaStreamSynchronize_ptsz, 3020, (cudaStream_t stream), (stream), \
         (HostWaits{}))                                                                            \
  /* The stream waits for a function of the program. */                                            \
  X_TWIN(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz, 10000,                                       \
         (cudaStream_t stream, cudaHostFn_t function, void* data), (stream, function, data),       \
         (StreamWaits{meant(stream)}))                                                             \
  X_TWIN(cudaStreamAddCallback, cudaStreamAddCallback_ptsz, 5000,                                  \
         (cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned int flags),     \
         (stream, function, data, flags), (StreamWaits{meant(stream)}))                            \
  X(cudaEventSynchronize, 3020, (cudaEvent_t event), (event), (HostWaits{}))                       \
  X(cudaDeviceSynchronize, 3020, (), (), (HostWaits{}))                                            \
  X(cudaStreamDestroy, 3020, (cudaStream_t stream), (stream), (StreamGoes{stream}))

// Functions that start and stop profilers: X(function, since, whether it starts them).
#define TPROF_CUDART_PROFILER(X) X(cudaProfilerStart, 4000, true) X(cudaProfilerStop, 4000, false)

// Functions that no training framework calls: passed through, and reported in the coverage. X(...,
// note)
// clang-format off
#define TPROF_CUDART_UNCOUNTED(X, X_TWIN) \
  X_TWIN(cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds, 3020, uncounted) \
  X_TWIN(cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz, 3020, uncounted) \
  X_TWIN(cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds, 3020, uncounted) \
  X_TWIN(cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz, 3020, uncounted) \
  X_TWIN(cudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray_ptds, 3020, uncounted) \
  X_TWIN(cudaMemcpyToArray, cudaMemcpyToArray_ptds, 3020, uncounted) \
  X_TWIN(cudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync_ptsz, 3020, uncounted) \
  X_TWIN(cudaMemcpyFromArray, cudaMemcpyFromArray_ptds, 3020, uncounted) \
  X_TWIN(cudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync_ptsz, 3020, uncounted) \
  X_TWIN(cudaMemcpyArrayToArray, cudaMemcpyArrayToArray_ptds, 3020, uncounted) \
  X_TWIN(cudaMemcpy3DPeer, cudaMemcpy3DPeer_ptds, 4000, uncounted) \
  X_TWIN(cudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync_ptsz, 4000, uncounted) \
  X_TWIN(cudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync_ptsz, 12080, uncounted) \
  X_TWIN(cudaMemcpyWithAttributesAsync, cudaMemcpyWithAttributesAsync_ptsz, 13020, uncounted) \
  X_TWIN(cudaMemcpy3DWithAttributesAsync, cudaMemcpy3DWithAttributesAsync_ptsz, 13020, uncounted) \
  X_TWIN(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz, 8000, uncounted) \
  X_TWIN(cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync_v2_ptsz, 12020, uncounted) \
  X_TWIN(cudaMemPrefetchBatchAsync, cudaMemPrefetchBatchAsync_ptsz, 13000, uncounted) \
  X_TWIN(cudaMemDiscardAndPrefetchBatchAsync, cudaMemDiscardAndPrefetchBatchAsync_ptsz, 13000, uncounted) \
  X(cudaGraphMemcpyNodeSetParams, 10000, graph_edited) \
  X(cudaGraphMemcpyNodeSetParams1D, 11010, graph_edited) \
  X(cudaGraphMemcpyNodeSetParamsToSymbol, 11010, graph_edited) \
  X(cudaGraphMemcpyNodeSetParamsFromSymbol, 11010, graph_edited) \
  X(cudaGraphNodeSetParams, 12020, graph_edited) \
  X(cudaGraphDestroyNode, 10000, graph_edited) \
  X(cudaGraphExecMemcpyNodeSetParams, 10020, graph_edited) \
  X(cudaGraphExecMemcpyNodeSetParams1D, 11010, graph_edited) \
  X(cudaGraphExecMemcpyNodeSetParamsToSymbol, 11010, graph_edited) \
  X(cudaGraphExecMemcpyNodeSetParamsFromSymbol, 11010, graph_edited) \
  X(cudaGraphExecNodeSetParams, 12020, graph_edited) \
  X(cudaGraphExecChildGraphNodeSetParams, 11010, graph_edited) \
  X(cudaGraphNodeSetEnabled, 11060, graph_edited)
// clang-format on
