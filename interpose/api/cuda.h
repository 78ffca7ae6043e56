// The CUDA driver functions that copy, which are counted with TPROF_DRIVER=1 only. Wrappers, names,
// what cuGetProcAddress is to give and the coverage report all follow from this one list.
//
// Each row is X_TWIN(function, twin, since, name, ...) or, for a function without a twin,
// X(function, since, name, ...).
//   function, twin  as the library exports them; callers that compile with, or ask for, a default
//                   stream of each thread's own get the twin
//   since, name     the name by which cuGetProcAddress knows both, and the CUDA version
//                   (cudaTypedefs.h) since when it means this prototype; older ones have 32-bit
//                   arguments
// Copies: X_TWIN(..., (parameters), (arguments), (how the arguments read as CopyArgs))
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

// cuda.h redefines some names by macros as newer versions. Here names are the exported ones.
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
#define TPROF_CUDA_COPY(X_TWIN) \
  X_TWIN(cuMemcpy, cuMemcpy_ptds, 4000, cuMemcpy, \
    (CUdeviceptr dst, CUdeviceptr src, size_t count), \
    (dst, src, count), ({address(dst), address(src), count, cudaMemcpyDefault, nullptr, true})) \
  X_TWIN(cuMemcpyAsync, cuMemcpyAsync_ptsz, 4000, cuMemcpyAsync, \
    (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream), \
    (dst, src, count, stream), ({address(dst), address(src), count, cudaMemcpyDefault, stream, false})) \
  X_TWIN(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, 3020, cuMemcpyHtoD, \
    (CUdeviceptr dst, const void* src, size_t count), \
    (dst, src, count), ({address(dst), src, count, cudaMemcpyHostToDevice, nullptr, true})) \
  X_TWIN(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, 3020, cuMemcpyHtoDAsync, \
    (CUdeviceptr dst, const void* src, size_t count, CUstream stream), \
    (dst, src, count, stream), ({address(dst), src, count, cudaMemcpyHostToDevice, stream, false})) \
  X_TWIN(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, 3020, cuMemcpyDtoH, \
    (void* dst, CUdeviceptr src, size_t count), \
    (dst, src, count), ({dst, address(src), count, cudaMemcpyDeviceToHost, nullptr, true})) \
  X_TWIN(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, 3020, cuMemcpyDtoHAsync, \
    (void* dst, CUdeviceptr src, size_t count, CUstream stream), \
    (dst, src, count, stream), ({dst, address(src), count, cudaMemcpyDeviceToHost, stream, false})) \
  X_TWIN(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, 3020, cuMemcpyDtoD, \
    (CUdeviceptr dst, CUdeviceptr src, size_t count), \
    (dst, src, count), ({address(dst), address(src), count, cudaMemcpyDeviceToDevice, nullptr, true})) \
  X_TWIN(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, 3020, cuMemcpyDtoDAsync, \
    (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream), \
    (dst, src, count, stream), ({address(dst), address(src), count, cudaMemcpyDeviceToDevice, stream, false})) \
  X_TWIN(cuMemcpyPeer, cuMemcpyPeer_ptds, 4000, cuMemcpyPeer, \
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t count), \
    (dst, dst_context, src, src_context, count), ({address(dst), address(src), count, cudaMemcpyDeviceToDevice, nullptr, true})) \
  X_TWIN(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz, 4000, cuMemcpyPeerAsync, \
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t count, CUstream stream), \
    (dst, dst_context, src, src_context, count, stream), ({address(dst), address(src), count, cudaMemcpyDeviceToDevice, stream, false})) \
  X_TWIN(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, 3020, cuMemcpy2D, \
    (const CUDA_MEMCPY2D* box), \
    (box), (region_copy(box, nullptr, true))) \
  X_TWIN(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, 3020, cuMemcpy2DAsync, \
    (const CUDA_MEMCPY2D* box, CUstream stream), \
    (box, stream), (region_copy(box, stream, false))) \
  X_TWIN(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, 3020, cuMemcpy2DUnaligned, \
    (const CUDA_MEMCPY2D* box), \
    (box), (region_copy(box, nullptr, true))) \
  X_TWIN(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, 3020, cuMemcpy3D, \
    (const CUDA_MEMCPY3D* box), \
    (box), (region_copy(box, nullptr, true))) \
  X_TWIN(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, 3020, cuMemcpy3DAsync, \
    (const CUDA_MEMCPY3D* box, CUstream stream), \
    (box, stream), (region_copy(box, stream, false)))

// Calls that make many copies: X_TWIN(..., until, (parameters), (arguments), (how they read as a
// Batch)). `until` is the version from which on cuGetProcAddress means another prototype by that
// name. The arguments are passed on as they travel, each in a register or a place on the stack.
#define TPROF_CUDA_BATCH(X_TWIN) \
  X_TWIN(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz, 12080, cuMemcpyBatchAsync, 13000, \
    (RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg attributes, RawArg indices, RawArg attributes_count, RawArg fail_index, RawArg stream), \
    (dsts, srcs, sizes, count, attributes, indices, attributes_count, fail_index, stream), (copies(dsts, srcs, sizes, count, stream))) \
  X_TWIN(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz, 13000, cuMemcpyBatchAsync, kNewestKnown, \
    (RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg attributes, RawArg indices, RawArg attributes_count, RawArg stream), \
    (dsts, srcs, sizes, count, attributes, indices, attributes_count, stream), (copies(dsts, srcs, sizes, count, stream)))

// Captures, CUDA graphs and their launches, which say what captured copies become:
// X(..., until, (parameters), (arguments), (what it tells, as in cudart.h))
#define TPROF_CUDA_GRAPH(X, X_TWIN) \
  X_TWIN(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, 10000, cuStreamBeginCapture, 10010, \
    (CUstream stream), (stream), (CaptureBegins{meant(stream), false})) \
  X_TWIN(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, 10010, cuStreamBeginCapture, kNewestKnown, \
    (CUstream stream, CUstreamCaptureMode mode), (stream, mode), (CaptureBegins{meant(stream), false})) \
  X_TWIN(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz, 12030, cuStreamBeginCaptureToGraph, kNewestKnown, \
    (CUstream stream, CUgraph graph, void* after, void* edges, size_t n, CUstreamCaptureMode mode), \
    (stream, graph, after, edges, n, mode), (CaptureBegins{meant(stream), true})) \
  X_TWIN(cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph_ptsz, 13030, cuStreamBeginRecaptureToGraph, kNewestKnown, \
    (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void* callback, void* data), \
    (stream, mode, graph, callback, data), (CaptureBegins{meant(stream), false})) \
  X_TWIN(cuStreamEndCapture, cuStreamEndCapture_ptsz, 10000, cuStreamEndCapture, kNewestKnown, \
    (CUstream stream, CUgraph * graph), (stream, graph), (CaptureEnds{meant(stream)})) \
  /* CUDA_GRAPH_INSTANTIATE_PARAMS begins with the flags. */ \
  X_TWIN(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz, 12000, cuGraphInstantiateWithParams, kNewestKnown, \
    (CUgraphExec * executable, CUgraph graph, unsigned long long* params), (executable, graph, params), \
    (Instantiates{executable, graph, params ? *params : 0})) \
  X_TWIN(cuGraphLaunch, cuGraphLaunch_ptsz, 10000, cuGraphLaunch, kNewestKnown, \
    (CUgraphExec executable, CUstream stream), (executable, stream), (LaunchesGraph{executable, meant(stream)})) \
  X(cuGraphInstantiate, 10000, cuGraphInstantiate, 11000, \
    (CUgraphExec * executable, CUgraph graph, void* node, void* log, size_t size), \
    (executable, graph, node, log, size), (Instantiates{executable, graph, 0})) \
  X(cuGraphInstantiate_v2, 11000, cuGraphInstantiate, 12000, \
    (CUgraphExec * executable, CUgraph graph, void* node, void* log, size_t size), \
    (executable, graph, node, log, size), (Instantiates{executable, graph, 0})) \
  X(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags, kNewestKnown, \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags), (executable, graph, flags), \
    (Instantiates{executable, graph, flags})) \
  X(cuGraphExecUpdate, 10020, cuGraphExecUpdate, 12000, \
    (CUgraphExec executable, CUgraph graph, void* node, void* result), (executable, graph, node, result), \
    (Updates{executable, graph})) \
  X(cuGraphExecUpdate_v2, 12000, cuGraphExecUpdate, kNewestKnown, \
    (CUgraphExec executable, CUgraph graph, void* result), (executable, graph, result), (Updates{executable, graph})) \
  X(cuGraphDestroy, 10000, cuGraphDestroy, kNewestKnown, (CUgraph graph), (graph), (Destroys{graph})) \
  X(cuGraphExecDestroy, 10000, cuGraphExecDestroy, kNewestKnown, (CUgraphExec executable), (executable), \
    (Destroys{executable}))

// Functions that allocate and free, looked at with TPROF_MEMORY=1 only:
// X(..., (parameters), (arguments), (what it is, see hook/memory.cpp))
#define TPROF_CUDA_ALLOCATION(X, X_TWIN) \
  X(cuMemAlloc_v2, 3020, cuMemAlloc, (CUdeviceptr * pointer, size_t size), (pointer, size), \
    (Allocates{pointer, size})) \
  X(cuMemAllocPitch_v2, 3020, cuMemAllocPitch, \
    (CUdeviceptr * pointer, size_t* pitch, size_t width, size_t height, unsigned element), \
    (pointer, pitch, width, height, element), (Allocates{pointer, width * height})) \
  X(cuMemAllocManaged, 6000, cuMemAllocManaged, (CUdeviceptr * pointer, size_t size, unsigned flags), \
    (pointer, size, flags), (Allocates{pointer, size, Where::managed})) \
  X(cuMemFree_v2, 3020, cuMemFree, (CUdeviceptr pointer), (pointer), (Frees{key_of(pointer)})) \
  X(cuMemHostAlloc, 2020, cuMemHostAlloc, (void** pointer, size_t size, unsigned flags), (pointer, size, flags), \
    (Allocates{pointer, size, Where::pinned})) \
  X(cuMemAllocHost_v2, 3020, cuMemAllocHost, (void** pointer, size_t size), (pointer, size), \
    (Allocates{pointer, size, Where::pinned})) \
  X(cuMemFreeHost, 2000, cuMemFreeHost, (void* pointer), (pointer), (Frees{key_of(pointer)})) \
  X(cuMemHostRegister_v2, 6050, cuMemHostRegister, (void* pointer, size_t size, unsigned flags), \
    (pointer, size, flags), (Allocates{&pointer, size, Where::pinned})) \
  X(cuMemHostUnregister, 4000, cuMemHostUnregister, (void* pointer), (pointer), (Frees{key_of(pointer)})) \
  X(cuMemCreate, 10020, cuMemCreate, \
    (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp* wanted, unsigned long long flags), \
    (handle, size, wanted, flags), (Creates{handle, size, wanted})) \
  X(cuMemRelease, 10020, cuMemRelease, (CUmemGenericAllocationHandle handle), (handle), (Frees{key_of_handle(handle)})) \
  X_TWIN(cuMemAllocAsync, cuMemAllocAsync_ptsz, 11020, cuMemAllocAsync, \
    (CUdeviceptr * pointer, size_t size, CUstream stream), (pointer, size, stream), \
    (allocates_on(meant(stream), pointer, size))) \
  X_TWIN(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, 11020, cuMemAllocFromPoolAsync, \
    (CUdeviceptr * pointer, size_t size, CUmemoryPool pool, CUstream stream), (pointer, size, pool, stream), \
    (allocates_on(meant(stream), pointer, size))) \
  X_TWIN(cuMemFreeAsync, cuMemFreeAsync_ptsz, 11020, cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), \
    (pointer, stream), (frees_on(meant(stream), key_of(pointer))))

// The same as TPROF_CUDART_FOLLOW, with TPROF_TIMING=events only: Triton launches by these, and so
// does every CUDA runtime that is linked in (cuBLAS's). cuCtxSynchronize has an argument from 13.0 on.
// X(..., until, (parameters), (arguments), (what it is, see hook/follow.cpp))
#define TPROF_CUDA_FOLLOW(X, X_TWIN) \
  X_TWIN(cuLaunchKernel, cuLaunchKernel_ptsz, 4000, cuLaunchKernel, kNewestKnown, \
    (CUfunction kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
     CUstream stream, void** parameters, void** extra), \
    (kernel, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra), (Launches{meant(stream)})) \
  X_TWIN(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, 11060, cuLaunchKernelEx, kNewestKnown, \
    (const CUlaunchConfig* config, CUfunction kernel, void** parameters, void** extra), \
    (config, kernel, parameters, extra), (Launches{meant(config->hStream)})) \
  X_TWIN(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, 9000, cuLaunchCooperativeKernel, kNewestKnown, \
    (CUfunction kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
     CUstream stream, void** parameters), \
    (kernel, gx, gy, gz, bx, by, bz, shared, stream, parameters), (Launches{meant(stream)})) \
  X_TWIN(cuEventRecord, cuEventRecord_ptsz, 2000, cuEventRecord, kNewestKnown, (CUevent event, CUstream stream), \
    (event, stream), (Records{meant(stream)})) \
  X_TWIN(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, 3020, cuStreamWaitEvent, kNewestKnown, \
    (CUstream stream, CUevent event, unsigned flags), (stream, event, flags), (StreamWaits{meant(stream)})) \
  X_TWIN(cuStreamSynchronize, cuStreamSynchronize_ptsz, 2000, cuStreamSynchronize, kNewestKnown, (CUstream stream), \
    (stream), (HostWaits{})) \
  X_TWIN(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, 10000, cuLaunchHostFunc, kNewestKnown, \
    (CUstream stream, CUhostFn function, void* data), (stream, function, data), (StreamWaits{meant(stream)})) \
  X(cuEventSynchronize, 2000, cuEventSynchronize, kNewestKnown, (CUevent event), (event), (HostWaits{})) \
  X(cuCtxSynchronize, 2000, cuCtxSynchronize, 13000, (), (), (HostWaits{})) \
  X(cuStreamDestroy_v2, 4000, cuStreamDestroy, kNewestKnown, (CUstream stream), (stream), (StreamGoes{stream})) \
  X(cuCtxDestroy_v2, 4000, cuCtxDestroy, kNewestKnown, (CUcontext context), (context), (ContextGoes{-1, context})) \
  X(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset, 11000, (CUdevice device), (device), \
    (ContextGoes{device, nullptr})) \
  X(cuDevicePrimaryCtxReset_v2, 11000, cuDevicePrimaryCtxReset, kNewestKnown, (CUdevice device), (device), \
    (ContextGoes{device, nullptr})) \
  X(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease, 11000, (CUdevice device), (device), \
    (ContextGoes{device, nullptr, false})) \
  X(cuDevicePrimaryCtxRelease_v2, 11000, cuDevicePrimaryCtxRelease, kNewestKnown, (CUdevice device), (device), \
    (ContextGoes{device, nullptr, false}))

// As TPROF_CUDART_UNCOUNTED, with TPROF_DRIVER=1 only: X(..., note). All of their arguments are passed on
// as they travel, so that no name's meaning matters.
#define TPROF_CUDA_UNCOUNTED(X, X_TWIN) \
  X_TWIN(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds, 3020, cuMemcpyDtoA, uncounted) \
  X_TWIN(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds, 3020, cuMemcpyAtoD, uncounted) \
  X_TWIN(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds, 3020, cuMemcpyHtoA, uncounted) \
  X_TWIN(cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz, 3020, cuMemcpyHtoAAsync, uncounted) \
  X_TWIN(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds, 3020, cuMemcpyAtoH, uncounted) \
  X_TWIN(cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz, 3020, cuMemcpyAtoHAsync, uncounted) \
  X_TWIN(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds, 3020, cuMemcpyAtoA, uncounted) \
  X_TWIN(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, 4000, cuMemcpy3DPeer, uncounted) \
  X_TWIN(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz, 4000, cuMemcpy3DPeerAsync, uncounted) \
  X_TWIN(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz, 12080, cuMemcpy3DBatchAsync, uncounted) \
  X_TWIN(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz, 13000, cuMemcpy3DBatchAsync, uncounted) \
  X_TWIN(cuMemcpyWithAttributesAsync, cuMemcpyWithAttributesAsync_ptsz, 13020, cuMemcpyWithAttributesAsync, uncounted) \
  X_TWIN(cuMemcpy3DWithAttributesAsync, cuMemcpy3DWithAttributesAsync_ptsz, 13020, cuMemcpy3DWithAttributesAsync, uncounted) \
  X_TWIN(cuFabricCpyBatchAsync, cuFabricCpyBatchAsync_ptsz, 13050, cuFabricCpyBatchAsync, uncounted) \
  X_TWIN(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz, 8000, cuMemPrefetchAsync, uncounted) \
  X_TWIN(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz, 12020, cuMemPrefetchAsync, uncounted) \
  X_TWIN(cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz, 13000, cuMemPrefetchBatchAsync, uncounted) \
  X_TWIN(cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync_ptsz, 13000, cuMemDiscardAndPrefetchBatchAsync, uncounted) \
  X(cuGraphMemcpyNodeSetParams, 10000, cuGraphMemcpyNodeSetParams, graph_edited) \
  X(cuGraphNodeSetParams, 12020, cuGraphNodeSetParams, graph_edited) \
  X(cuGraphDestroyNode, 10000, cuGraphDestroyNode, graph_edited) \
  X(cuGraphExecMemcpyNodeSetParams, 10020, cuGraphExecMemcpyNodeSetParams, graph_edited) \
  X(cuGraphExecNodeSetParams, 12020, cuGraphExecNodeSetParams, graph_edited) \
  X(cuGraphExecChildGraphNodeSetParams, 11010, cuGraphExecChildGraphNodeSetParams, graph_edited) \
  X(cuGraphNodeSetEnabled, 11060, cuGraphNodeSetEnabled, graph_edited)

// The functions that return other functions, for programs and every CUDA runtime: X(function,
// since); bodies in hook/entry_point.cpp.
#define TPROF_CUDA_ENTRY(X) \
  X(cuGetProcAddress, 11030) \
  X(cuGetProcAddress_v2, 12000)
// clang-format on
