// The CUDA driver functions that copy, which are counted with TPROF_DRIVER=1 only. Wrappers, names,
// what cuGetProcAddress is to give and the coverage report all follow from this one list.
//
// X(function, twin, name, since, (parameters), (arguments), (how the arguments read as CopyArgs))
//   function, twin  as the library exports them; callers that compile with, or ask for, a default
//                   stream of each thread's own get the twin
//   name, since     by which cuGetProcAddress knows both, and the CUDA version (cudaTypedefs.h)
//                   since when it means this prototype; older ones have 32-bit arguments
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

// cuda.h gives some names their newest meaning by a macro. Here a name is what is exported.
#undef cuGetProcAddress
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync
#undef cuMemPrefetchAsync
#undef cuStreamBeginCapture
#undef cuGraphInstantiate
#undef cuGraphExecUpdate
#undef cuLaunchKernel
#undef cuLaunchKernelEx
#undef cuLaunchCooperativeKernel
#undef cuEventRecord
#undef cuStreamWaitEvent
#undef cuStreamSynchronize
#undef cuLaunchHostFunc
#undef cuCtxSynchronize
#undef cuStreamDestroy
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxRelease

// clang-format off
#define TPROF_CUDA_COPY(X)                                                                                              \
  X(cuMemcpy, cuMemcpy_ptds, cuMemcpy, 4000,                                                                            \
    (CUdeviceptr dst, CUdeviceptr src, size_t count),                                                                   \
    (dst, src, count), ({address(dst), address(src), count, cudaMemcpyDefault, nullptr, true}))                                   \
  X(cuMemcpyAsync, cuMemcpyAsync_ptsz, cuMemcpyAsync, 4000,                                                             \
    (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream),                                                  \
    (dst, src, count, stream), ({address(dst), address(src), count, cudaMemcpyDefault, stream, false}))                           \
  X(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD, 3020,                                                          \
    (CUdeviceptr dst, const void* src, size_t count),                                                                   \
    (dst, src, count), ({address(dst), src, count, cudaMemcpyHostToDevice, nullptr, true}))                                  \
  X(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync, 3020,                                           \
    (CUdeviceptr dst, const void* src, size_t count, CUstream stream),                                                  \
    (dst, src, count, stream), ({address(dst), src, count, cudaMemcpyHostToDevice, stream, false}))                          \
  X(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH, 3020,                                                          \
    (void* dst, CUdeviceptr src, size_t count),                                                                         \
    (dst, src, count), ({dst, address(src), count, cudaMemcpyDeviceToHost, nullptr, true}))                                  \
  X(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync, 3020,                                           \
    (void* dst, CUdeviceptr src, size_t count, CUstream stream),                                                        \
    (dst, src, count, stream), ({dst, address(src), count, cudaMemcpyDeviceToHost, stream, false}))                          \
  X(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD, 3020,                                                          \
    (CUdeviceptr dst, CUdeviceptr src, size_t count),                                                                   \
    (dst, src, count), ({address(dst), address(src), count, cudaMemcpyDeviceToDevice, nullptr, true}))                            \
  X(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync, 3020,                                           \
    (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream),                                                  \
    (dst, src, count, stream), ({address(dst), address(src), count, cudaMemcpyDeviceToDevice, stream, false}))                    \
  X(cuMemcpyPeer, cuMemcpyPeer_ptds, cuMemcpyPeer, 4000,                                                                \
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t count),                     \
    (dst, dst_context, src, src_context, count), ({address(dst), address(src), count, cudaMemcpyDeviceToDevice, nullptr, true}))  \
  X(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync, 4000,                                                 \
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t count, CUstream stream),    \
    (dst, dst_context, src, src_context, count, stream), ({address(dst), address(src), count, cudaMemcpyDeviceToDevice, stream, false}))\
  X(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, cuMemcpy2D, 3020,                                                                \
    (const CUDA_MEMCPY2D* box),                                                                                         \
    (box), (region_copy(box, nullptr, true)))                                                                              \
  X(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync, 3020,                                                 \
    (const CUDA_MEMCPY2D* box, CUstream stream),                                                                        \
    (box, stream), (region_copy(box, stream, false)))                                                                      \
  X(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2DUnaligned, 3020,                                     \
    (const CUDA_MEMCPY2D* box),                                                                                         \
    (box), (region_copy(box, nullptr, true)))                                                                              \
  X(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, cuMemcpy3D, 3020,                                                                \
    (const CUDA_MEMCPY3D* box),                                                                                         \
    (box), (region_copy(box, nullptr, true)))                                                                              \
  X(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DAsync, 3020,                                                 \
    (const CUDA_MEMCPY3D* box, CUstream stream),                                                                        \
    (box, stream), (region_copy(box, stream, false)))

// Calls that make many copies: X(function, twin, name, since, until, (parameters),
// (arguments), (how they read as a Batch)). `until` is the version from which on cuGetProcAddress
// means another prototype by that name. The arguments are passed on as they travel, each in a
// register or a place on the stack.
#define TPROF_CUDA_BATCH(X)                                                                                                             \
  X(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz, cuMemcpyBatchAsync, 12080, 13000,                                                      \
    (RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg attributes, RawArg indices, RawArg attributes_count, RawArg fail_index, RawArg stream), \
    (dsts, srcs, sizes, count, attributes, indices, attributes_count, fail_index, stream), (copies(dsts, srcs, sizes, count, stream)))  \
  X(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz, cuMemcpyBatchAsync, 13000, kNewestKnown,                                         \
    (RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg attributes, RawArg indices, RawArg attributes_count, RawArg stream),                  \
    (dsts, srcs, sizes, count, attributes, indices, attributes_count, stream), (copies(dsts, srcs, sizes, count, stream)))

// Captures, CUDA graphs and their launches, which say what captured copies become:
// X(function, twin, name, since, until, (parameters), (arguments), (what it tells, as in cudart.h))
#define TPROF_CUDA_GRAPH(X)                                                                                             \
  X(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, cuStreamBeginCapture, 10000, 10010,                                \
    (CUstream stream), (stream), (CaptureBegins{meant(stream), false}))                                                 \
  X(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture, 10010, kNewestKnown,                   \
    (CUstream stream, CUstreamCaptureMode mode), (stream, mode), (CaptureBegins{meant(stream), false}))                 \
  X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz, cuStreamBeginCaptureToGraph, 12030, kNewestKnown,    \
    (CUstream stream, CUgraph graph, void* after, void* edges, size_t n, CUstreamCaptureMode mode),                     \
    (stream, graph, after, edges, n, mode), (CaptureBegins{meant(stream), true}))                                       \
  X(cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph_ptsz, cuStreamBeginRecaptureToGraph, 13030, kNewestKnown,\
    (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void* callback, void* data),                             \
    (stream, mode, graph, callback, data), (CaptureBegins{meant(stream), false}))                                       \
  X(cuStreamEndCapture, cuStreamEndCapture_ptsz, cuStreamEndCapture, 10000, kNewestKnown,                               \
    (CUstream stream, CUgraph * graph), (stream, graph), (CaptureEnds{meant(stream)}))                                  \
  /* CUDA_GRAPH_INSTANTIATE_PARAMS begins with the flags. */                                                            \
  X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, kNewestKnown, \
    (CUgraphExec * executable, CUgraph graph, unsigned long long* params), (executable, graph, params),                 \
    (Instantiates{executable, graph, params ? *params : 0}))                                                            \
  X(cuGraphLaunch, cuGraphLaunch_ptsz, cuGraphLaunch, 10000, kNewestKnown,                                              \
    (CUgraphExec executable, CUstream stream), (executable, stream), (LaunchesGraph{executable, meant(stream)}))
// The same without a twin: X(function, name, since, until, (parameters), (arguments), (what it tells)).
#define TPROF_CUDA_GRAPH_ONLY(X)                                                                                        \
  X(cuGraphInstantiate, cuGraphInstantiate, 10000, 11000,                                                               \
    (CUgraphExec * executable, CUgraph graph, void* node, void* log, size_t size),                                      \
    (executable, graph, node, log, size), (Instantiates{executable, graph, 0}))                                         \
  X(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, 12000,                                                            \
    (CUgraphExec * executable, CUgraph graph, void* node, void* log, size_t size),                                      \
    (executable, graph, node, log, size), (Instantiates{executable, graph, 0}))                                         \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, kNewestKnown,                                      \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags), (executable, graph, flags),                    \
    (Instantiates{executable, graph, flags}))                                                                           \
  X(cuGraphExecUpdate, cuGraphExecUpdate, 10020, 12000,                                                                 \
    (CUgraphExec executable, CUgraph graph, void* node, void* result), (executable, graph, node, result),               \
    (Updates{executable, graph}))                                                                                       \
  X(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000, kNewestKnown,                                                       \
    (CUgraphExec executable, CUgraph graph, void* result), (executable, graph, result), (Updates{executable, graph}))   \
  X(cuGraphDestroy, cuGraphDestroy, 10000, kNewestKnown, (CUgraph graph), (graph), (Destroys{graph}))                   \
  X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, kNewestKnown, (CUgraphExec executable), (executable),                \
    (Destroys{executable}))

// Functions that allocate and free, looked at with TPROF_MEMORY=1 only:
// X(function, name, since, (parameters), (arguments), (what it is, see record/allocation_calls.h))
#define TPROF_CUDA_ALLOCATION(X)                                                                                        \
  X(cuMemAlloc_v2, cuMemAlloc, 3020, (CUdeviceptr * pointer, size_t size), (pointer, size),                             \
    (Allocates{pointer, size}))                                                                                         \
  X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020,                                                                          \
    (CUdeviceptr * pointer, size_t* pitch, size_t width, size_t height, unsigned element),                              \
    (pointer, pitch, width, height, element), (Allocates{pointer, width * height}))                                     \
  X(cuMemAllocManaged, cuMemAllocManaged, 6000, (CUdeviceptr * pointer, size_t size, unsigned flags),                   \
    (pointer, size, flags), (Allocates{pointer, size, Where::managed}))                                                 \
  X(cuMemFree_v2, cuMemFree, 3020, (CUdeviceptr pointer), (pointer), (Frees{key_of(pointer)}))                      \
  X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void** pointer, size_t size, unsigned flags), (pointer, size, flags),        \
    (Allocates{pointer, size, Where::pinned}))                                                                          \
  X(cuMemAllocHost_v2, cuMemAllocHost, 3020, (void** pointer, size_t size), (pointer, size),                            \
    (Allocates{pointer, size, Where::pinned}))                                                                          \
  X(cuMemFreeHost, cuMemFreeHost, 2000, (void* pointer), (pointer), (Frees{key_of(pointer)}))                                   \
  X(cuMemHostRegister_v2, cuMemHostRegister, 6050, (void* pointer, size_t size, unsigned flags),                        \
    (pointer, size, flags), (Pins{pointer, size}))                                                                      \
  X(cuMemHostUnregister, cuMemHostUnregister, 4000, (void* pointer), (pointer), (Frees{key_of(pointer)}))                       \
  X(cuMemCreate, cuMemCreate, 10020,                                                                                    \
    (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp* wanted, unsigned long long flags),  \
    (handle, size, wanted, flags), (Creates{handle, size, wanted}))                                                     \
  X(cuMemRelease, cuMemRelease, 10020, (CUmemGenericAllocationHandle handle), (handle), (Frees{key_of_handle(handle)}))             \
  X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000,                                                    \
    (CUmemGenericAllocationHandle * handle, void* address), (handle, address), (Retains{handle}))
// The same with a twin: X(function, twin, name, since, (parameters), (arguments), (what it is)).
#define TPROF_CUDA_ALLOCATION_ASYNC(X)                                                                                  \
  X(cuMemAllocAsync, cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020,                                                      \
    (CUdeviceptr * pointer, size_t size, CUstream stream), (pointer, size, stream),                                     \
    (allocates_on(meant(stream), pointer, size)))                                                                       \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync, 11020,                              \
    (CUdeviceptr * pointer, size_t size, CUmemoryPool pool, CUstream stream), (pointer, size, pool, stream),            \
    (allocates_on(meant(stream), pointer, size)))                                                                       \
  X(cuMemFreeAsync, cuMemFreeAsync_ptsz, cuMemFreeAsync, 11020, (CUdeviceptr pointer, CUstream stream),                 \
    (pointer, stream), (frees_on(meant(stream), key_of(pointer))))

// The same as TPROF_CUDART_FOLLOW, with TPROF_TIMING=events only: Triton launches by these, and so
// does every CUDA runtime that is linked in (cuBLAS's).
// X(function, twin, name, since, until, (parameters), (arguments), (what it is, see hook/follow.cpp))
#define TPROF_CUDA_FOLLOW(X)                                                                                            \
  X(cuLaunchKernel, cuLaunchKernel_ptsz, cuLaunchKernel, 4000, kNewestKnown,                                            \
    (CUfunction kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,  \
     CUstream stream, void** parameters, void** extra),                                                                 \
    (kernel, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra), (Launches{meant(stream)}))                     \
  X(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, cuLaunchKernelEx, 11060, kNewestKnown,                                     \
    (const CUlaunchConfig* config, CUfunction kernel, void** parameters, void** extra),                                 \
    (config, kernel, parameters, extra), (Launches{meant(config->hStream)}))                                            \
  X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel, 9000, kNewestKnown,           \
    (CUfunction kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,  \
     CUstream stream, void** parameters),                                                                               \
    (kernel, gx, gy, gz, bx, by, bz, shared, stream, parameters), (Launches{meant(stream)}))                            \
  X(cuEventRecord, cuEventRecord_ptsz, cuEventRecord, 2000, kNewestKnown, (CUevent event, CUstream stream),             \
    (event, stream), (Records{meant(stream)}))                                                                          \
  X(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, cuStreamWaitEvent, 3020, kNewestKnown,                                   \
    (CUstream stream, CUevent event, unsigned flags), (stream, event, flags), (StreamWaits{meant(stream)}))             \
  X(cuStreamSynchronize, cuStreamSynchronize_ptsz, cuStreamSynchronize, 2000, kNewestKnown, (CUstream stream),          \
    (stream), (HostWaits{}))                                                                                            \
  X(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, cuLaunchHostFunc, 10000, kNewestKnown,                                     \
    (CUstream stream, CUhostFn function, void* data), (stream, function, data), (StreamWaits{meant(stream)}))
// The same without a twin. cuCtxSynchronize has an argument from 13.0 on.
#define TPROF_CUDA_FOLLOW_ONLY(X)                                                                                       \
  X(cuEventSynchronize, cuEventSynchronize, 2000, kNewestKnown, (CUevent event), (event), (HostWaits{}))                \
  X(cuCtxSynchronize, cuCtxSynchronize, 2000, 13000, (), (), (HostWaits{}))                                             \
  X(cuStreamDestroy_v2, cuStreamDestroy, 4000, kNewestKnown, (CUstream stream), (stream), (StreamGoes{stream}))         \
  X(cuCtxDestroy_v2, cuCtxDestroy, 4000, kNewestKnown, (CUcontext context), (context), (ContextGoes{-1, context}))      \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, 11000, (CUdevice device), (device),                         \
    (ContextGoes{device, nullptr}))                                                                                     \
  X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, kNewestKnown, (CUdevice device), (device),              \
    (ContextGoes{device, nullptr}))                                                                                     \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 7000, 11000, (CUdevice device), (device),                     \
    (ContextMayGo{device}))                                                                                             \
  X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, kNewestKnown, (CUdevice device), (device),          \
    (ContextMayGo{device}))

// As TPROF_CUDART_UNCOUNTED, with TPROF_DRIVER=1 only: X(function, twin, name, since, note). All of their
// arguments are passed on as they travel, so that no name's meaning matters.
#define TPROF_CUDA_UNCOUNTED(X)                                                                                              \
  X(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds, cuMemcpyDtoA, 3020, uncounted) \
  X(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds, cuMemcpyAtoD, 3020, uncounted) \
  X(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds, cuMemcpyHtoA, 3020, uncounted) \
  X(cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz, cuMemcpyHtoAAsync, 3020, uncounted) \
  X(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds, cuMemcpyAtoH, 3020, uncounted) \
  X(cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz, cuMemcpyAtoHAsync, 3020, uncounted) \
  X(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds, cuMemcpyAtoA, 3020, uncounted) \
  X(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, cuMemcpy3DPeer, 4000, uncounted) \
  X(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz, cuMemcpy3DPeerAsync, 4000, uncounted) \
  X(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz, cuMemcpy3DBatchAsync, 12080, uncounted) \
  X(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz, cuMemcpy3DBatchAsync, 13000, uncounted) \
  X(cuMemcpyWithAttributesAsync, cuMemcpyWithAttributesAsync_ptsz, cuMemcpyWithAttributesAsync, 13020, uncounted) \
  X(cuMemcpy3DWithAttributesAsync, cuMemcpy3DWithAttributesAsync_ptsz, cuMemcpy3DWithAttributesAsync, 13020, uncounted) \
  X(cuFabricCpyBatchAsync, cuFabricCpyBatchAsync_ptsz, cuFabricCpyBatchAsync, 13050, uncounted) \
  X(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz, cuMemPrefetchAsync, 8000, uncounted) \
  X(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz, cuMemPrefetchAsync, 12020, uncounted) \
  X(cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz, cuMemPrefetchBatchAsync, 13000, uncounted) \
  X(cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync_ptsz, cuMemDiscardAndPrefetchBatchAsync, 13000, uncounted)
// The same without a twin: X(function, since, note).
#define TPROF_CUDA_UNCOUNTED_ONLY(X) \
  X(cuGraphMemcpyNodeSetParams, 10000, graph_edited) \
  X(cuGraphNodeSetParams, 12020, graph_edited) \
  X(cuGraphDestroyNode, 10000, graph_edited) \
  X(cuGraphExecMemcpyNodeSetParams, 10020, graph_edited) \
  X(cuGraphExecNodeSetParams, 12020, graph_edited) \
  X(cuGraphExecChildGraphNodeSetParams, 11010, graph_edited) \
  X(cuGraphNodeSetEnabled, 11060, graph_edited)

// The functions through which programs, and every CUDA runtime, reach the others: X(function,
// since); bodies in hook/entry_point.cpp.
#define TPROF_CUDA_ENTRY(X)     \
  X(cuGetProcAddress, 11030)    \
  X(cuGetProcAddress_v2, 12000)
// clang-format on
