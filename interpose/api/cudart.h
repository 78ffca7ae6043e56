// The CUDA runtime functions that copy between host and device: the one list from which wrappers,
// names and the coverage report follow.
//
// X(function, twin, (parameters), (arguments), (how the arguments read as CopyArgs))
//   twin  the name that programs compiled with --default-stream=per-thread call instead
//
// Their prototypes are the same in CUDA 11, 12 and 13 (cudart is versioned by soname). Those of
// TPROF_CUDART_BATCH below are not.
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

// The same where an array takes part, or a box is copied (capture/box.h).
#define TPROF_CUDART_COPY_ARRAY(X)                                                                 \
  X(cudaMemcpy3D, cudaMemcpy3D_ptds, (const cudaMemcpy3DParms* p), (p),                            \
    ({box_copy(p, nullptr, true)}))                                                                \
  X(cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz, (const cudaMemcpy3DParms* p, cudaStream_t stream),  \
    (p, stream), ({box_copy(p, stream, false)}))                                                   \
  X(cudaMemcpy3DPeer, cudaMemcpy3DPeer_ptds, (const cudaMemcpy3DPeerParms* p), (p),                \
    ({box_copy(p, nullptr, true)}))                                                                \
  X(cudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync_ptsz,                                             \
    (const cudaMemcpy3DPeerParms* p, cudaStream_t stream), (p, stream),                            \
    ({box_copy(p, stream, false)}))                                                                \
  X(cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds,                                                 \
    (cudaArray_t dst, size_t x, size_t y, const void* src, size_t spitch, size_t width,            \
     size_t height, cudaMemcpyKind kind),                                                          \
    (dst, x, y, src, spitch, width, height, kind),                                                 \
    ({.dst = nullptr,                                                                              \
      .src = src,                                                                                  \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz,                                       \
    (cudaArray_t dst, size_t x, size_t y, const void* src, size_t spitch, size_t width,            \
     size_t height, cudaMemcpyKind kind, cudaStream_t stream),                                     \
    (dst, x, y, src, spitch, width, height, kind, stream),                                         \
    ({.dst = nullptr,                                                                              \
      .src = src,                                                                                  \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = stream,                                                                            \
      .sync = false}))                                                                             \
  X(cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds,                                             \
    (void* dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,            \
     size_t height, cudaMemcpyKind kind),                                                          \
    (dst, dpitch, src, x, y, width, height, kind),                                                 \
    ({.dst = dst,                                                                                  \
      .src = nullptr,                                                                              \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz,                                   \
    (void* dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,            \
     size_t height, cudaMemcpyKind kind, cudaStream_t stream),                                     \
    (dst, dpitch, src, x, y, width, height, kind, stream),                                         \
    ({.dst = dst,                                                                                  \
      .src = nullptr,                                                                              \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = stream,                                                                            \
      .sync = false}))                                                                             \
  X(cudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray_ptds,                                       \
    (cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src, size_t src_x,             \
     size_t src_y, size_t width, size_t height, cudaMemcpyKind kind),                              \
    (dst, dst_x, dst_y, src, src_x, src_y, width, height, kind),                                   \
    ({.dst = nullptr,                                                                              \
      .src = nullptr,                                                                              \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpyToArray, cudaMemcpyToArray_ptds,                                                     \
    (cudaArray_t dst, size_t x, size_t y, const void* src, size_t count, cudaMemcpyKind kind),     \
    (dst, x, y, src, count, kind),                                                                 \
    ({.dst = nullptr, .src = src, .bytes = count, .kind = kind, .stream = nullptr, .sync = true})) \
  X(cudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync_ptsz,                                           \
    (cudaArray_t dst, size_t x, size_t y, const void* src, size_t count, cudaMemcpyKind kind,      \
     cudaStream_t stream),                                                                         \
    (dst, x, y, src, count, kind, stream),                                                         \
    ({.dst = nullptr, .src = src, .bytes = count, .kind = kind, .stream = stream, .sync = false})) \
  X(cudaMemcpyFromArray, cudaMemcpyFromArray_ptds,                                                 \
    (void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count, cudaMemcpyKind kind),     \
    (dst, src, x, y, count, kind),                                                                 \
    ({.dst = dst, .src = nullptr, .bytes = count, .kind = kind, .stream = nullptr, .sync = true})) \
  X(cudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync_ptsz,                                       \
    (void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count, cudaMemcpyKind kind,      \
     cudaStream_t stream),                                                                         \
    (dst, src, x, y, count, kind, stream),                                                         \
    ({.dst = dst, .src = nullptr, .bytes = count, .kind = kind, .stream = stream, .sync = false})) \
  X(cudaMemcpyArrayToArray, cudaMemcpyArrayToArray_ptds,                                           \
    (cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src, size_t src_x,             \
     size_t src_y, size_t count, cudaMemcpyKind kind),                                             \
    (dst, dst_x, dst_y, src, src_x, src_y, count, kind),                                           \
    ({.dst = nullptr,                                                                              \
      .src = nullptr,                                                                              \
      .bytes = count,                                                                              \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))

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

// Copies of which a call makes many, and functions whose prototypes differ between versions of
// CUDA: X(function, twin, buckets, (parameters), (arguments), (how they read as a Batch)).
// Every argument is passed on as a Word, also one that only some versions have: the caller's stack
// holds something there, which a library that does not know the argument never looks at. What they
// mean follows from `cuda`, the version of the library that serves the call.
#define TPROF_CUDART_BATCH(X)                                                                      \
  X(cudaMemcpyBatchAsync, cudaMemcpyBatchAsync_ptsz, BY_DIRECTION,                                 \
    (Word dsts, Word srcs, Word sizes, Word count, Word attributes, Word indices,                  \
     Word attributes_count, Word eighth, Word ninth),                                              \
    (dsts, srcs, sizes, count, attributes, indices, attributes_count, eighth, ninth),              \
    (copies_12(cuda, dsts, srcs, sizes, count, eighth, ninth)))                                    \
  X(cudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync_ptsz, BY_DIRECTION,                             \
    (Word count, Word operations, Word third, Word fourth, Word fifth),                            \
    (count, operations, third, fourth, fifth), (boxes_12(cuda, count, operations, fourth, fifth))) \
  X(cudaMemcpyWithAttributesAsync, cudaMemcpyWithAttributesAsync_ptsz, BY_DIRECTION,               \
    (Word dst, Word src, Word size, Word attributes, Word stream),                                 \
    (dst, src, size, attributes, stream), (copies(&dst, &src, &size, kOne, stream)))               \
  X(cudaMemcpy3DWithAttributesAsync, cudaMemcpy3DWithAttributesAsync_ptsz, BY_DIRECTION,           \
    (Word operation, Word flags, Word stream), (operation, flags, stream),                         \
    (boxes(operation, kOne, stream)))                                                              \
  X(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz, MANAGED_ONLY,                                 \
    (Word address, Word bytes, Word third, Word fourth, Word fifth),                               \
    (address, bytes, third, fourth, fifth), (prefetch_12(cuda, bytes, fourth, fifth)))             \
  X(cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync_v2_ptsz, MANAGED_ONLY,                           \
    (Word address, Word bytes, Word location, Word flags, Word stream),                            \
    (address, bytes, location, flags, stream), (prefetch(bytes, stream)))                          \
  X(cudaMemPrefetchBatchAsync, cudaMemPrefetchBatchAsync_ptsz, MANAGED_ONLY,                       \
    (Word addresses, Word sizes, Word count, Word locations, Word indices, Word locations_count,   \
     Word flags, Word stream),                                                                     \
    (addresses, sizes, count, locations, indices, locations_count, flags, stream),                 \
    (prefetches(sizes, count, stream)))                                                            \
  X(cudaMemDiscardAndPrefetchBatchAsync, cudaMemDiscardAndPrefetchBatchAsync_ptsz, MANAGED_ONLY,   \
    (Word addresses, Word sizes, Word count, Word locations, Word indices, Word locations_count,   \
     Word flags, Word stream),                                                                     \
    (addresses, sizes, count, locations, indices, locations_count, flags, stream),                 \
    (prefetches(sizes, count, stream)))

// What copies and graphs depend on; bodies in hook/cudart_{memory,graph}.cpp.
// clang-format off
#define TPROF_CUDART_MEMORY(X)                                                  \
  X(cudaSetDevice) X(cudaHostAlloc) X(cudaMallocHost) X(cudaFreeHost)           \
  X(cudaHostRegister) X(cudaHostUnregister) X(cudaMallocManaged) X(cudaFree)
#define TPROF_CUDART_GRAPH(X)                                                   \
  X(cudaStreamBeginCapture) X(cudaStreamBeginCapture_ptsz)                      \
  X(cudaStreamBeginCaptureToGraph) X(cudaStreamBeginCaptureToGraph_ptsz)        \
  X(cudaStreamEndCapture) X(cudaStreamEndCapture_ptsz)                          \
  X(cudaGraphCreate) X(cudaGraphClone) X(cudaGraphAddChildGraphNode)            \
  X(cudaGraphDestroyNode) X(cudaGraphDestroy)                                   \
  X(cudaGraphInstantiate) X(cudaGraphInstantiateWithFlags)                      \
  X(cudaGraphInstantiateWithParams) X(cudaGraphInstantiateWithParams_ptsz)      \
  X(cudaGraphExecUpdate) X(cudaGraphExecChildGraphNodeSetParams)                \
  X(cudaGraphNodeSetEnabled) X(cudaGraphExecDestroy)                            \
  X(cudaGraphLaunch) X(cudaGraphLaunch_ptsz)
// Through which programs get at the driver's functions; bodies in hook/entry_point.cpp.
#define TPROF_CUDART_ENTRY(X)                                                   \
  X(cudaGetDriverEntryPoint) X(cudaGetDriverEntryPoint_ptsz)                    \
  X(cudaGetDriverEntryPointByVersion) X(cudaGetDriverEntryPointByVersion_ptsz)
// clang-format on

// Copies that are put into a graph by hand, or changed there: they count as captured when that is
// done, and under this function's name as replayed with every launch.
// X(function, (parameters), (arguments), (how the arguments read as CopyArgs), (where the copy is))
#define TPROF_CUDART_NODE_ARGS(to, from, size) \
  ({.dst = to, .src = from, .bytes = size, .kind = kind, .stream = nullptr, .sync = false})
#define TPROF_CUDART_NODE(X)                                                                       \
  X(cudaGraphAddMemcpyNode,                                                                        \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n,            \
     const cudaMemcpy3DParms* p),                                                                  \
    (node, graph, after, n, p), ({box_copy(p, nullptr, false)}), copy_added(graph, *node, call))   \
  X(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const cudaMemcpy3DParms* p), (node, p),   \
    ({box_copy(p, nullptr, false)}), copy_changed(node, call))                                     \
  X(cudaGraphExecMemcpyNodeSetParams,                                                              \
    (cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemcpy3DParms* p),                \
    (executable, node, p), ({box_copy(p, nullptr, false)}), copy_changed(executable, node, call))  \
  X(cudaGraphAddMemcpyNode1D,                                                                      \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n, void* dst, \
     const void* src, size_t count, cudaMemcpyKind kind),                                          \
    (node, graph, after, n, dst, src, count, kind), TPROF_CUDART_NODE_ARGS(dst, src, count),       \
    copy_added(graph, *node, call))                                                                \
  X(cudaGraphAddMemcpyNodeToSymbol,                                                                \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n,            \
     const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind),       \
    (node, graph, after, n, symbol, src, count, offset, kind),                                     \
    TPROF_CUDART_NODE_ARGS(nullptr, src, count), copy_added(graph, *node, call))                   \
  X(cudaGraphAddMemcpyNodeFromSymbol,                                                              \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n, void* dst, \
     const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind),                        \
    (node, graph, after, n, dst, symbol, count, offset, kind),                                     \
    TPROF_CUDART_NODE_ARGS(dst, nullptr, count), copy_added(graph, *node, call))                   \
  X(cudaGraphMemcpyNodeSetParams1D,                                                                \
    (cudaGraphNode_t node, void* dst, const void* src, size_t count, cudaMemcpyKind kind),         \
    (node, dst, src, count, kind), TPROF_CUDART_NODE_ARGS(dst, src, count),                        \
    copy_changed(node, call))                                                                      \
  X(cudaGraphMemcpyNodeSetParamsToSymbol,                                                          \
    (cudaGraphNode_t node, const void* symbol, const void* src, size_t count, size_t offset,       \
     cudaMemcpyKind kind),                                                                         \
    (node, symbol, src, count, offset, kind), TPROF_CUDART_NODE_ARGS(nullptr, src, count),         \
    copy_changed(node, call))                                                                      \
  X(cudaGraphMemcpyNodeSetParamsFromSymbol,                                                        \
    (cudaGraphNode_t node, void* dst, const void* symbol, size_t count, size_t offset,             \
     cudaMemcpyKind kind),                                                                         \
    (node, dst, symbol, count, offset, kind), TPROF_CUDART_NODE_ARGS(dst, nullptr, count),         \
    copy_changed(node, call))                                                                      \
  X(cudaGraphExecMemcpyNodeSetParams1D,                                                            \
    (cudaGraphExec_t executable, cudaGraphNode_t node, void* dst, const void* src, size_t count,   \
     cudaMemcpyKind kind),                                                                         \
    (executable, node, dst, src, count, kind), TPROF_CUDART_NODE_ARGS(dst, src, count),            \
    copy_changed(executable, node, call))                                                          \
  X(cudaGraphExecMemcpyNodeSetParamsToSymbol,                                                      \
    (cudaGraphExec_t executable, cudaGraphNode_t node, const void* symbol, const void* src,        \
     size_t count, size_t offset, cudaMemcpyKind kind),                                            \
    (executable, node, symbol, src, count, offset, kind),                                          \
    TPROF_CUDART_NODE_ARGS(nullptr, src, count), copy_changed(executable, node, call))             \
  X(cudaGraphExecMemcpyNodeSetParamsFromSymbol,                                                    \
    (cudaGraphExec_t executable, cudaGraphNode_t node, void* dst, const void* symbol,              \
     size_t count, size_t offset, cudaMemcpyKind kind),                                            \
    (executable, node, dst, symbol, count, offset, kind),                                          \
    TPROF_CUDART_NODE_ARGS(dst, nullptr, count), copy_changed(executable, node, call))

// The same for nodes of any kind, by their parameters; bodies in hook/cudart_node.cpp.
#define TPROF_CUDART_ANY_NODE(X) \
  X(cudaGraphAddNode) X(cudaGraphAddNode_v2) X(cudaGraphNodeSetParams) X(cudaGraphExecNodeSetParams)
