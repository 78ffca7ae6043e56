// The CUDA driver functions that copy, which are counted with TPROF_DRIVER=1 only: the one list
// from which wrappers, names, what cuGetProcAddress is to give and the coverage report follow.
//
// X(function, twin, name, since, (parameters), (arguments), (how the arguments read as CopyArgs))
//   function, twin  as the library exports them; the twin is what callers get who compile with, or
//                   ask for, a default stream of each thread's own
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

// clang-format off
#define TPROF_CUDA_COPY(X)                                                                                              \
  X(cuMemcpy, cuMemcpy_ptds, cuMemcpy, 4000,                                                                            \
    (CUdeviceptr dst, CUdeviceptr src, size_t count),                                                                   \
    (dst, src, count), ({at(dst), at(src), count, cudaMemcpyDefault, nullptr, true}))                                   \
  X(cuMemcpyAsync, cuMemcpyAsync_ptsz, cuMemcpyAsync, 4000,                                                             \
    (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream),                                                  \
    (dst, src, count, stream), ({at(dst), at(src), count, cudaMemcpyDefault, stream, false}))                           \
  X(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD, 3020,                                                          \
    (CUdeviceptr dst, const void* src, size_t count),                                                                   \
    (dst, src, count), ({at(dst), src, count, cudaMemcpyHostToDevice, nullptr, true}))                                  \
  X(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync, 3020,                                           \
    (CUdeviceptr dst, const void* src, size_t count, CUstream stream),                                                  \
    (dst, src, count, stream), ({at(dst), src, count, cudaMemcpyHostToDevice, stream, false}))                          \
  X(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH, 3020,                                                          \
    (void* dst, CUdeviceptr src, size_t count),                                                                         \
    (dst, src, count), ({dst, at(src), count, cudaMemcpyDeviceToHost, nullptr, true}))                                  \
  X(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync, 3020,                                           \
    (void* dst, CUdeviceptr src, size_t count, CUstream stream),                                                        \
    (dst, src, count, stream), ({dst, at(src), count, cudaMemcpyDeviceToHost, stream, false}))                          \
  X(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD, 3020,                                                          \
    (CUdeviceptr dst, CUdeviceptr src, size_t count),                                                                   \
    (dst, src, count), ({at(dst), at(src), count, cudaMemcpyDeviceToDevice, nullptr, true}))                            \
  X(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync, 3020,                                           \
    (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream),                                                  \
    (dst, src, count, stream), ({at(dst), at(src), count, cudaMemcpyDeviceToDevice, stream, false}))                    \
  X(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds, cuMemcpyDtoA, 3020,                                                          \
    (CUarray dst, size_t offset, CUdeviceptr src, size_t count),                                                        \
    (dst, offset, src, count), ({nullptr, at(src), count, cudaMemcpyDeviceToDevice, nullptr, true}))                    \
  X(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds, cuMemcpyAtoD, 3020,                                                          \
    (CUdeviceptr dst, CUarray src, size_t offset, size_t count),                                                        \
    (dst, src, offset, count), ({at(dst), nullptr, count, cudaMemcpyDeviceToDevice, nullptr, true}))                    \
  X(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds, cuMemcpyHtoA, 3020,                                                          \
    (CUarray dst, size_t offset, const void* src, size_t count),                                                        \
    (dst, offset, src, count), ({nullptr, src, count, cudaMemcpyHostToDevice, nullptr, true}))                          \
  X(cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz, cuMemcpyHtoAAsync, 3020,                                           \
    (CUarray dst, size_t offset, const void* src, size_t count, CUstream stream),                                       \
    (dst, offset, src, count, stream), ({nullptr, src, count, cudaMemcpyHostToDevice, stream, false}))                  \
  X(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds, cuMemcpyAtoH, 3020,                                                          \
    (void* dst, CUarray src, size_t offset, size_t count),                                                              \
    (dst, src, offset, count), ({dst, nullptr, count, cudaMemcpyDeviceToHost, nullptr, true}))                          \
  X(cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz, cuMemcpyAtoHAsync, 3020,                                           \
    (void* dst, CUarray src, size_t offset, size_t count, CUstream stream),                                             \
    (dst, src, offset, count, stream), ({dst, nullptr, count, cudaMemcpyDeviceToHost, stream, false}))                  \
  X(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds, cuMemcpyAtoA, 3020,                                                          \
    (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t count),                                     \
    (dst, dst_offset, src, src_offset, count), ({nullptr, nullptr, count, cudaMemcpyDeviceToDevice, nullptr, true}))    \
  X(cuMemcpyPeer, cuMemcpyPeer_ptds, cuMemcpyPeer, 4000,                                                                \
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t count),                     \
    (dst, dst_context, src, src_context, count), ({at(dst), at(src), count, cudaMemcpyDeviceToDevice, nullptr, true}))  \
  X(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync, 4000,                                                 \
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t count, CUstream stream),    \
    (dst, dst_context, src, src_context, count, stream), ({at(dst), at(src), count, cudaMemcpyDeviceToDevice, stream, false}))\
  X(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, cuMemcpy2D, 3020,                                                                \
    (const CUDA_MEMCPY2D* box),                                                                                         \
    (box), (box_copy(box, nullptr, true)))                                                                              \
  X(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync, 3020,                                                 \
    (const CUDA_MEMCPY2D* box, CUstream stream),                                                                        \
    (box, stream), (box_copy(box, stream, false)))                                                                      \
  X(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2DUnaligned, 3020,                                     \
    (const CUDA_MEMCPY2D* box),                                                                                         \
    (box), (box_copy(box, nullptr, true)))                                                                              \
  X(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, cuMemcpy3D, 3020,                                                                \
    (const CUDA_MEMCPY3D* box),                                                                                         \
    (box), (box_copy(box, nullptr, true)))                                                                              \
  X(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DAsync, 3020,                                                 \
    (const CUDA_MEMCPY3D* box, CUstream stream),                                                                        \
    (box, stream), (box_copy(box, stream, false)))                                                                      \
  X(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, cuMemcpy3DPeer, 4000,                                                          \
    (const CUDA_MEMCPY3D_PEER* box),                                                                                    \
    (box), (box_copy(box, nullptr, true)))                                                                              \
  X(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz, cuMemcpy3DPeerAsync, 4000,                                           \
    (const CUDA_MEMCPY3D_PEER* box, CUstream stream),                                                                   \
    (box, stream), (box_copy(box, stream, false)))

// Copies of which a call makes many, and prefetches: X(function, twin, name, since, until,
// (parameters), (arguments), (how they read as a Batch)). `until` is the version from which on
// cuGetProcAddress means another prototype by that name. The arguments are passed on as they travel,
// each in a register or a place on the stack.
#define TPROF_CUDA_BATCH(X)                                                                                                             \
  X(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz, cuMemcpyBatchAsync, 12080, 13000,                                                      \
    (Word dsts, Word srcs, Word sizes, Word count, Word attributes, Word indices, Word attributes_count, Word fail_index, Word stream), \
    (dsts, srcs, sizes, count, attributes, indices, attributes_count, fail_index, stream), (copies(dsts, srcs, sizes, count, stream)))  \
  X(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz, cuMemcpyBatchAsync, 13000, kNewestKnown,                                         \
    (Word dsts, Word srcs, Word sizes, Word count, Word attributes, Word indices, Word attributes_count, Word stream),                  \
    (dsts, srcs, sizes, count, attributes, indices, attributes_count, stream), (copies(dsts, srcs, sizes, count, stream)))              \
  X(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz, cuMemcpy3DBatchAsync, 12080, 13000,                                                \
    (Word count, Word operations, Word fail_index, Word flags, Word stream),                                                            \
    (count, operations, fail_index, flags, stream), (boxes(operations, count, stream)))                                                 \
  X(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz, cuMemcpy3DBatchAsync, 13000, kNewestKnown,                                   \
    (Word count, Word operations, Word flags, Word stream),                                                                             \
    (count, operations, flags, stream), (boxes(operations, count, stream)))                                                             \
  X(cuMemcpyWithAttributesAsync, cuMemcpyWithAttributesAsync_ptsz, cuMemcpyWithAttributesAsync, 13020, kNewestKnown,                   \
    (Word dst, Word src, Word size, Word attributes, Word stream),                                                                     \
    (dst, src, size, attributes, stream), (copies(&dst, &src, &size, one(), stream)))                                                  \
  X(cuMemcpy3DWithAttributesAsync, cuMemcpy3DWithAttributesAsync_ptsz, cuMemcpy3DWithAttributesAsync, 13020, kNewestKnown,             \
    (Word operation, Word flags, Word stream), (operation, flags, stream), (boxes(operation, one(), stream)))                          \
  X(cuFabricCpyBatchAsync, cuFabricCpyBatchAsync_ptsz, cuFabricCpyBatchAsync, 13050, kNewestKnown,                                     \
    (Word count, Word operations, Word flags, Word stream),                                                                            \
    (count, operations, flags, stream), (fabric_copies(operations, count, stream)))                                                    \
  X(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz, cuMemPrefetchAsync, 8000, 12020,                                                       \
    (Word address, Word bytes, Word device, Word stream),                                                                               \
    (address, bytes, device, stream), (prefetch(bytes, stream)))                                                                        \
  X(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz, cuMemPrefetchAsync, 13000, kNewestKnown,                                         \
    (Word address, Word bytes, Word location, Word flags, Word stream),                                                                 \
    (address, bytes, location, flags, stream), (prefetch(bytes, stream)))                                                               \
  X(cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz, cuMemPrefetchBatchAsync, 13000, kNewestKnown,                                \
    (Word addresses, Word sizes, Word count, Word locations, Word indices, Word locations_count, Word flags, Word stream),              \
    (addresses, sizes, count, locations, indices, locations_count, flags, stream), (prefetches(sizes, count, stream)))                  \
  X(cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync_ptsz, cuMemDiscardAndPrefetchBatchAsync, 13000, kNewestKnown,  \
    (Word addresses, Word sizes, Word count, Word locations, Word indices, Word locations_count, Word flags, Word stream),              \
    (addresses, sizes, count, locations, indices, locations_count, flags, stream), (prefetches(sizes, count, stream)))

// Copies that are put into a graph by hand, and changed there: X(function, since, (parameters),
// (arguments), (reading), what capture/graphs.h is told). The first is also the name of copies that
// a graph is found to hold, put there by functions that no row wraps (capture/graph_scan.h).
#define TPROF_CUDA_NODE(X)                                                                                              \
  X(cuGraphAddMemcpyNode, 10000,                                                                                        \
    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t n, const CUDA_MEMCPY3D* box, CUcontext context),\
    (node, graph, after, n, box, context), (box_copy(box, nullptr, false)), copy_added(graph, *node, call))             \
  X(cuGraphMemcpyNodeSetParams, 10000, (CUgraphNode node, const CUDA_MEMCPY3D* box),                                    \
    (node, box), (box_copy(box, nullptr, false)), copy_changed(node, call))                                             \
  X(cuGraphExecMemcpyNodeSetParams, 10020,                                                                              \
    (CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* box, CUcontext context),                            \
    (executable, node, box, context), (box_copy(box, nullptr, false)), copy_changed(executable, node, call))
// The same for a node of any kind, by its parameters; body in hook/cuda_node.cpp.
#define TPROF_CUDA_ANY_NODE(X) X(cuGraphExecNodeSetParams, 12020)

// Captures and launches, which say what captured copies become: X(function, twin, name, since,
// until); bodies in hook/cuda_graph.cpp and hook/cuda_node.cpp.
#define TPROF_CUDA_GRAPH(X)                                                                                             \
  X(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, cuStreamBeginCapture, 10000, 10010)                                \
  X(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture, 10010, kNewestKnown)                   \
  X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz, cuStreamBeginCaptureToGraph, 12030, kNewestKnown)    \
  X(cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph_ptsz, cuStreamBeginRecaptureToGraph, 13030, kNewestKnown)\
  X(cuStreamEndCapture, cuStreamEndCapture_ptsz, cuStreamEndCapture, 10000, kNewestKnown)                               \
  X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, kNewestKnown) \
  X(cuGraphLaunch, cuGraphLaunch_ptsz, cuGraphLaunch, 10000, kNewestKnown)
// The same without a twin: X(function, name, since, until).
#define TPROF_CUDA_GRAPH_ONLY(X)                                                                                        \
  X(cuGraphInstantiate, cuGraphInstantiate, 10000, 11000)                                                               \
  X(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, 12000)                                                            \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, kNewestKnown)                                      \
  X(cuGraphClone, cuGraphClone, 10000, kNewestKnown)                                                                    \
  X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000, kNewestKnown)                                            \
  X(cuGraphDestroyNode, cuGraphDestroyNode, 10000, kNewestKnown)                                                        \
  X(cuGraphExecUpdate, cuGraphExecUpdate, 10020, 12000)                                                                 \
  X(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000, kNewestKnown)                                                       \
  X(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, 11010, kNewestKnown)                        \
  X(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, kNewestKnown)                                                  \
  X(cuGraphDestroy, cuGraphDestroy, 10000, kNewestKnown)                                                                \
  X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, kNewestKnown)

// Through which programs, and every CUDA runtime, reach the others. X(function, since); bodies in
// hook/entry_point.cpp.
#define TPROF_CUDA_ENTRY(X)     \
  X(cuGetProcAddress, 11030)    \
  X(cuGetProcAddress_v2, 12000)
// clang-format on
