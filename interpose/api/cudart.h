// The CUDA runtime functions that copy between host and device: the one list from which wrappers,
// names and the coverage report follow.
//
// X(function, twin, since, (parameters), (arguments), (how the arguments read as CopyArgs))
//   twin   the name that programs compiled with --default-stream=per-thread call instead (CUDA 7.0)
//   since  the first CUDA that has the function, of 3.2 and later, by CUPTI's list of the runtime's
//          functions (cupti_runtime_cbid.h) and the headers of 12.9 to 13.2
//
// Their prototypes are the same in CUDA 11, 12 and 13 (cudart is versioned by soname). Those of
// TPROF_CUDART_BATCH below are not.
#pragma once

#define TPROF_CUDART_COPY(X)                                                                       \
  X(cudaMemcpy, cudaMemcpy_ptds, 3020,                                                             \
    (void* dst, const void* src, size_t count, cudaMemcpyKind kind), (dst, src, count, kind),      \
    ({.dst = dst, .src = src, .bytes = count, .kind = kind, .stream = nullptr, .sync = true}))     \
  X(cudaMemcpyAsync, cudaMemcpyAsync_ptsz, 3020,                                                   \
    (void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream),          \
    (dst, src, count, kind, stream),                                                               \
    ({.dst = dst, .src = src, .bytes = count, .kind = kind, .stream = stream, .sync = false}))     \
  X(cudaMemcpy2D, cudaMemcpy2D_ptds, 3020,                                                         \
    (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,        \
     cudaMemcpyKind kind),                                                                         \
    (dst, dpitch, src, spitch, width, height, kind),                                               \
    ({.dst = dst,                                                                                  \
      .src = src,                                                                                  \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz, 3020,                                               \
    (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,        \
     cudaMemcpyKind kind, cudaStream_t stream),                                                    \
    (dst, dpitch, src, spitch, width, height, kind, stream),                                       \
    ({.dst = dst,                                                                                  \
      .src = src,                                                                                  \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = stream,                                                                            \
      .sync = false}))                                                                             \
  X(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds, 3020,                                             \
    (const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind),       \
    (symbol, src, count, offset, kind),                                                            \
    ({.dst = nullptr, .src = src, .bytes = count, .kind = kind, .stream = nullptr, .sync = true})) \
  X(cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz, 3020,                                   \
    (const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind,        \
     cudaStream_t stream),                                                                         \
    (symbol, src, count, offset, kind, stream),                                                    \
    ({.dst = nullptr, .src = src, .bytes = count, .kind = kind, .stream = stream, .sync = false})) \
  X(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds, 3020,                                         \
    (void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind),             \
    (dst, symbol, count, offset, kind),                                                            \
    ({.dst = dst, .src = nullptr, .bytes = count, .kind = kind, .stream = nullptr, .sync = true})) \
  X(cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz, 3020,                               \
    (void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,              \
     cudaStream_t stream),                                                                         \
    (dst, symbol, count, offset, kind, stream),                                                    \
    ({.dst = dst, .src = nullptr, .bytes = count, .kind = kind, .stream = stream, .sync = false}))

// The same where an array takes part, or a box is copied (capture/box.h).
#define TPROF_CUDART_COPY_ARRAY(X)                                                                 \
  X(cudaMemcpy3D, cudaMemcpy3D_ptds, 3020, (const cudaMemcpy3DParms* p), (p),                      \
    ({box_copy(p, nullptr, true)}))                                                                \
  X(cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz, 3020,                                               \
    (const cudaMemcpy3DParms* p, cudaStream_t stream), (p, stream),                                \
    ({box_copy(p, stream, false)}))                                                                \
  X(cudaMemcpy3DPeer, cudaMemcpy3DPeer_ptds, 4000, (const cudaMemcpy3DPeerParms* p), (p),          \
    ({box_copy(p, nullptr, true)}))                                                                \
  X(cudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync_ptsz, 4000,                                       \
    (const cudaMemcpy3DPeerParms* p, cudaStream_t stream), (p, stream),                            \
    ({box_copy(p, stream, false)}))                                                                \
  X(cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds, 3020,                                           \
    (cudaArray_t dst, size_t x, size_t y, const void* src, size_t spitch, size_t width,            \
     size_t height, cudaMemcpyKind kind),                                                          \
    (dst, x, y, src, spitch, width, height, kind),                                                 \
    ({.dst = nullptr,                                                                              \
      .src = src,                                                                                  \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz, 3020,                                 \
    (cudaArray_t dst, size_t x, size_t y, const void* src, size_t spitch, size_t width,            \
     size_t height, cudaMemcpyKind kind, cudaStream_t stream),                                     \
    (dst, x, y, src, spitch, width, height, kind, stream),                                         \
    ({.dst = nullptr,                                                                              \
      .src = src,                                                                                  \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = stream,                                                                            \
      .sync = false}))                                                                             \
  X(cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds, 3020,                                       \
    (void* dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,            \
     size_t height, cudaMemcpyKind kind),                                                          \
    (dst, dpitch, src, x, y, width, height, kind),                                                 \
    ({.dst = dst,                                                                                  \
      .src = nullptr,                                                                              \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz, 3020,                             \
    (void* dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,            \
     size_t height, cudaMemcpyKind kind, cudaStream_t stream),                                     \
    (dst, dpitch, src, x, y, width, height, kind, stream),                                         \
    ({.dst = dst,                                                                                  \
      .src = nullptr,                                                                              \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = stream,                                                                            \
      .sync = false}))                                                                             \
  X(cudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray_ptds, 3020,                                 \
    (cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src, size_t src_x,             \
     size_t src_y, size_t width, size_t height, cudaMemcpyKind kind),                              \
    (dst, dst_x, dst_y, src, src_x, src_y, width, height, kind),                                   \
    ({.dst = nullptr,                                                                              \
      .src = nullptr,                                                                              \
      .bytes = width * height,                                                                     \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpyToArray, cudaMemcpyToArray_ptds, 3020,                                               \
    (cudaArray_t dst, size_t x, size_t y, const void* src, size_t count, cudaMemcpyKind kind),     \
    (dst, x, y, src, count, kind),                                                                 \
    ({.dst = nullptr, .src = src, .bytes = count, .kind = kind, .stream = nullptr, .sync = true})) \
  X(cudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync_ptsz, 3020,                                     \
    (cudaArray_t dst, size_t x, size_t y, const void* src, size_t count, cudaMemcpyKind kind,      \
     cudaStream_t stream),                                                                         \
    (dst, x, y, src, count, kind, stream),                                                         \
    ({.dst = nullptr, .src = src, .bytes = count, .kind = kind, .stream = stream, .sync = false})) \
  X(cudaMemcpyFromArray, cudaMemcpyFromArray_ptds, 3020,                                           \
    (void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count, cudaMemcpyKind kind),     \
    (dst, src, x, y, count, kind),                                                                 \
    ({.dst = dst, .src = nullptr, .bytes = count, .kind = kind, .stream = nullptr, .sync = true})) \
  X(cudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync_ptsz, 3020,                                 \
    (void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count, cudaMemcpyKind kind,      \
     cudaStream_t stream),                                                                         \
    (dst, src, x, y, count, kind, stream),                                                         \
    ({.dst = dst, .src = nullptr, .bytes = count, .kind = kind, .stream = stream, .sync = false})) \
  X(cudaMemcpyArrayToArray, cudaMemcpyArrayToArray_ptds, 3020,                                     \
    (cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src, size_t src_x,             \
     size_t src_y, size_t count, cudaMemcpyKind kind),                                             \
    (dst, dst_x, dst_y, src, src_x, src_y, count, kind),                                           \
    ({.dst = nullptr,                                                                              \
      .src = nullptr,                                                                              \
      .bytes = count,                                                                              \
      .kind = kind,                                                                                \
      .stream = nullptr,                                                                           \
      .sync = true}))

// The same without a twin: X(function, since, (parameters), (arguments), (reading)).
#define TPROF_CUDART_COPY_PEER(X)                                                                  \
  X(cudaMemcpyPeer, 4000,                                                                          \
    (void* dst, int dstDevice, const void* src, int srcDevice, size_t count),                      \
    (dst, dstDevice, src, srcDevice, count),                                                       \
    ({.dst = dst,                                                                                  \
      .src = src,                                                                                  \
      .bytes = count,                                                                              \
      .kind = cudaMemcpyDeviceToDevice,                                                            \
      .stream = nullptr,                                                                           \
      .sync = true}))                                                                              \
  X(cudaMemcpyPeerAsync, 4000,                                                                     \
    (void* dst, int dstDevice, const void* src, int srcDevice, size_t count, cudaStream_t stream), \
    (dst, dstDevice, src, srcDevice, count, stream),                                               \
    ({.dst = dst,                                                                                  \
      .src = src,                                                                                  \
      .bytes = count,                                                                              \
      .kind = cudaMemcpyDeviceToDevice,                                                            \
      .stream = stream,                                                                            \
      .sync = false}))

// Copies of which a call makes many, and functions whose prototypes differ between versions of
// CUDA: X(function, twin, since, buckets, (parameters), (arguments), (how they read as a Batch)).
// Every argument is passed on as a Word, also one that only some versions have: the caller's stack
// holds something there, which a library that does not know the argument never looks at. What they
// mean follows from `cuda`, the version of the library that serves the call.
#define TPROF_CUDART_BATCH(X)                                                                      \
  X(cudaMemcpyBatchAsync, cudaMemcpyBatchAsync_ptsz, 12080, BY_DIRECTION,                          \
    (Word dsts, Word srcs, Word sizes, Word count, Word attributes, Word indices,                  \
     Word attributes_count, Word eighth, Word ninth),                                              \
    (dsts, srcs, sizes, count, attributes, indices, attributes_count, eighth, ninth),              \
    (copies_12(cuda, dsts, srcs, sizes, count, eighth, ninth)))                                    \
  X(cudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync_ptsz, 12080, BY_DIRECTION,                      \
    (Word count, Word operations, Word third, Word fourth, Word fifth),                            \
    (count, operations, third, fourth, fifth), (boxes_12(cuda, count, operations, fourth, fifth))) \
  X(cudaMemcpyWithAttributesAsync, cudaMemcpyWithAttributesAsync_ptsz, 13020, BY_DIRECTION,        \
    (Word dst, Word src, Word size, Word attributes, Word stream),                                 \
    (dst, src, size, attributes, stream), (copies(&dst, &src, &size, one(), stream)))              \
  X(cudaMemcpy3DWithAttributesAsync, cudaMemcpy3DWithAttributesAsync_ptsz, 13020, BY_DIRECTION,    \
    (Word operation, Word flags, Word stream), (operation, flags, stream),                         \
    (boxes(operation, one(), stream)))                                                             \
  X(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz, 8000, MANAGED_ONLY,                           \
    (Word address, Word bytes, Word third, Word fourth, Word fifth),                               \
    (address, bytes, third, fourth, fifth), (prefetch_12(cuda, bytes, fourth, fifth)))             \
  X(cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync_v2_ptsz, 12020, MANAGED_ONLY,                    \
    (Word address, Word bytes, Word location, Word flags, Word stream),                            \
    (address, bytes, location, flags, stream), (prefetch(bytes, stream)))                          \
  X(cudaMemPrefetchBatchAsync, cudaMemPrefetchBatchAsync_ptsz, 13000, MANAGED_ONLY,                \
    (Word addresses, Word sizes, Word count, Word locations, Word indices, Word locations_count,   \
     Word flags, Word stream),                                                                     \
    (addresses, sizes, count, locations, indices, locations_count, flags, stream),                 \
    (prefetches(sizes, count, stream)))                                                            \
  X(cudaMemDiscardAndPrefetchBatchAsync, cudaMemDiscardAndPrefetchBatchAsync_ptsz, 13000,          \
    MANAGED_ONLY,                                                                                  \
    (Word addresses, Word sizes, Word count, Word locations, Word indices, Word locations_count,   \
     Word flags, Word stream),                                                                     \
    (addresses, sizes, count, locations, indices, locations_count, flags, stream),                 \
    (prefetches(sizes, count, stream)))

// What copies and graphs depend on: X(function, since); bodies in hook/cudart_{memory,graph}.cpp.
// clang-format off
#define TPROF_CUDART_MEMORY(X) \
  X(cudaSetDevice, 3020)       \
  X(cudaHostAlloc, 3020)       \
  X(cudaMallocHost, 3020)      \
  X(cudaFreeHost, 3020)        \
  X(cudaHostRegister, 4000)    \
  X(cudaHostUnregister, 4000)  \
  X(cudaMallocManaged, 6000)   \
  X(cudaFree, 3020)
#define TPROF_CUDART_GRAPH(X)                    \
  X(cudaStreamBeginCapture, 10000)               \
  X(cudaStreamBeginCapture_ptsz, 10000)          \
  X(cudaStreamBeginCaptureToGraph, 12030)        \
  X(cudaStreamBeginCaptureToGraph_ptsz, 12030)   \
  X(cudaStreamBeginRecaptureToGraph, 13030)      \
  X(cudaStreamBeginRecaptureToGraph_ptsz, 13030) \
  X(cudaStreamEndCapture, 10000)                 \
  X(cudaStreamEndCapture_ptsz, 10000)            \
  X(cudaGraphCreate, 10000)                      \
  X(cudaGraphClone, 10000)                       \
  X(cudaGraphAddChildGraphNode, 10000)           \
  X(cudaGraphDestroyNode, 10000)                 \
  X(cudaGraphDestroy, 10000)                     \
  X(cudaGraphInstantiate, 10000)                 \
  X(cudaGraphInstantiateWithFlags, 11040)        \
  X(cudaGraphInstantiateWithParams, 12000)       \
  X(cudaGraphInstantiateWithParams_ptsz, 12000)  \
  X(cudaGraphExecUpdate, 10020)                  \
  X(cudaGraphExecChildGraphNodeSetParams, 11010) \
  X(cudaGraphNodeSetEnabled, 11060)              \
  X(cudaGraphExecDestroy, 10000)                 \
  X(cudaGraphLaunch, 10000)                      \
  X(cudaGraphLaunch_ptsz, 10000)
// Through which programs get at the driver's functions: X(function, since); bodies in hook/entry_point.cpp.
#define TPROF_CUDART_ENTRY(X)                     \
  X(cudaGetDriverEntryPoint, 11030)               \
  X(cudaGetDriverEntryPoint_ptsz, 11030)          \
  X(cudaGetDriverEntryPointByVersion, 12050)      \
  X(cudaGetDriverEntryPointByVersion_ptsz, 12050)
// clang-format on

// Copies that are put into a graph by hand, or changed there: they count as captured when that is
// done, and under this function's name as replayed with every launch.
// X(function, since, (parameters), (arguments), (how the arguments read as CopyArgs), (where the
// copy is))
#define TPROF_CUDART_NODE_ARGS(to, from, size) \
  ({.dst = to, .src = from, .bytes = size, .kind = kind, .stream = nullptr, .sync = false})
#define TPROF_CUDART_NODE(X)                                                                       \
  X(cudaGraphAddMemcpyNode, 10000,                                                                 \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n,            \
     const cudaMemcpy3DParms* p),                                                                  \
    (node, graph, after, n, p), ({box_copy(p, nullptr, false)}), copy_added(graph, *node, call))   \
  X(cudaGraphMemcpyNodeSetParams, 10000, (cudaGraphNode_t node, const cudaMemcpy3DParms* p),       \
    (node, p), ({box_copy(p, nullptr, false)}), copy_changed(node, call))                          \
  X(cudaGraphExecMemcpyNodeSetParams, 10020,                                                       \
    (cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemcpy3DParms* p),                \
    (executable, node, p), ({box_copy(p, nullptr, false)}), copy_changed(executable, node, call))  \
  X(cudaGraphAddMemcpyNode1D, 11010,                                                               \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n, void* dst, \
     const void* src, size_t count, cudaMemcpyKind kind),                                          \
    (node, graph, after, n, dst, src, count, kind), TPROF_CUDART_NODE_ARGS(dst, src, count),       \
    copy_added(graph, *node, call))                                                                \
  X(cudaGraphAddMemcpyNodeToSymbol, 11010,                                                         \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n,            \
     const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind),       \
    (node, graph, after, n, symbol, src, count, offset, kind),                                     \
    TPROF_CUDART_NODE_ARGS(nullptr, src, count), copy_added(graph, *node, call))                   \
  X(cudaGraphAddMemcpyNodeFromSymbol, 11010,                                                       \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t n, void* dst, \
     const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind),                        \
    (node, graph, after, n, dst, symbol, count, offset, kind),                                     \
    TPROF_CUDART_NODE_ARGS(dst, nullptr, count), copy_added(graph, *node, call))                   \
  X(cudaGraphMemcpyNodeSetParams1D, 11010,                                                         \
    (cudaGraphNode_t node, void* dst, const void* src, size_t count, cudaMemcpyKind kind),         \
    (node, dst, src, count, kind), TPROF_CUDART_NODE_ARGS(dst, src, count),                        \
    copy_changed(node, call))                                                                      \
  X(cudaGraphMemcpyNodeSetParamsToSymbol, 11010,                                                   \
    (cudaGraphNode_t node, const void* symbol, const void* src, size_t count, size_t offset,       \
     cudaMemcpyKind kind),                                                                         \
    (node, symbol, src, count, offset, kind), TPROF_CUDART_NODE_ARGS(nullptr, src, count),         \
    copy_changed(node, call))                                                                      \
  X(cudaGraphMemcpyNodeSetParamsFromSymbol, 11010,                                                 \
    (cudaGraphNode_t node, void* dst, const void* symbol, size_t count, size_t offset,             \
     cudaMemcpyKind kind),                                                                         \
    (node, dst, symbol, count, offset, kind), TPROF_CUDART_NODE_ARGS(dst, nullptr, count),         \
    copy_changed(node, call))                                                                      \
  X(cudaGraphExecMemcpyNodeSetParams1D, 11010,                                                     \
    (cudaGraphExec_t executable, cudaGraphNode_t node, void* dst, const void* src, size_t count,   \
     cudaMemcpyKind kind),                                                                         \
    (executable, node, dst, src, count, kind), TPROF_CUDART_NODE_ARGS(dst, src, count),            \
    copy_changed(executable, node, call))                                                          \
  X(cudaGraphExecMemcpyNodeSetParamsToSymbol, 11010,                                               \
    (cudaGraphExec_t executable, cudaGraphNode_t node, const void* symbol, const void* src,        \
     size_t count, size_t offset, cudaMemcpyKind kind),                                            \
    (executable, node, symbol, src, count, offset, kind),                                          \
    TPROF_CUDART_NODE_ARGS(nullptr, src, count), copy_changed(executable, node, call))             \
  X(cudaGraphExecMemcpyNodeSetParamsFromSymbol, 11010,                                             \
    (cudaGraphExec_t executable, cudaGraphNode_t node, void* dst, const void* symbol,              \
     size_t count, size_t offset, cudaMemcpyKind kind),                                            \
    (executable, node, dst, symbol, count, offset, kind),                                          \
    TPROF_CUDART_NODE_ARGS(dst, nullptr, count), copy_changed(executable, node, call))

// The same for nodes of any kind, by their parameters; bodies in hook/cudart_node.cpp.
#define TPROF_CUDART_ANY_NODE(X)   \
  X(cudaGraphAddNode, 12020)       \
  X(cudaGraphAddNode_v2, 12030)    \
  X(cudaGraphNodeSetParams, 12020) \
  X(cudaGraphExecNodeSetParams, 12020)
