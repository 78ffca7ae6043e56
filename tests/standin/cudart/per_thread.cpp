// The _ptsz and _ptds twins: the same calls, where stream 0 means the calling thread's own stream.
#include "cudart/entry.h"

using namespace standin;

// One row per twin: its parameters, and the plain call that it makes. -Bsymbolic keeps that call
// inside the library.
#define TWIN(name, parameters, ...)        \
  extern "C" cudaError_t name parameters;  \
  extern "C" cudaError_t name parameters { \
    return __VA_ARGS__;                    \
  }

namespace {

// The synchronous calls have no stream to hand on; they order themselves after the thread's own.
template <class... P, class... A>
cudaError_t synced(cudaError_t (*call)(P...), A... arguments) {
  const cudaError_t before = cudaStreamSynchronize(cudaStreamPerThread);
  return before == cudaSuccess ? call(arguments...) : before;
}

}  // namespace

TWIN(cudaMemcpy_ptds, (void* d, const void* s, size_t n, cudaMemcpyKind k),
     synced(cudaMemcpy, d, s, n, k))
TWIN(cudaMemcpy2D_ptds,
     (void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind k),
     synced(cudaMemcpy2D, d, dp, s, sp, w, h, k))
TWIN(cudaMemcpy3D_ptds, (const cudaMemcpy3DParms* p), synced(cudaMemcpy3D, p))
TWIN(cudaMemcpyToSymbol_ptds, (const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind k),
     synced(cudaMemcpyToSymbol, y, s, n, o, k))
TWIN(cudaMemcpyFromSymbol_ptds, (void* d, const void* y, size_t n, size_t o, cudaMemcpyKind k),
     synced(cudaMemcpyFromSymbol, d, y, n, o, k))
TWIN(cudaMemset_ptds, (void* d, int v, size_t n), synced(cudaMemset, d, v, n))

TWIN(cudaMemcpyAsync_ptsz,
     (void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t stream),
     cudaMemcpyAsync(d, s, n, k, per_thread(stream)))
TWIN(cudaMemcpy2DAsync_ptsz,
     (void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind k,
      cudaStream_t stream),
     cudaMemcpy2DAsync(d, dp, s, sp, w, h, k, per_thread(stream)))
TWIN(cudaMemcpy3DAsync_ptsz, (const cudaMemcpy3DParms* p, cudaStream_t stream),
     cudaMemcpy3DAsync(p, per_thread(stream)))
TWIN(cudaMemcpyToSymbolAsync_ptsz,
     (const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t stream),
     cudaMemcpyToSymbolAsync(y, s, n, o, k, per_thread(stream)))
TWIN(cudaMemcpyFromSymbolAsync_ptsz,
     (void* d, const void* y, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t stream),
     cudaMemcpyFromSymbolAsync(d, y, n, o, k, per_thread(stream)))
TWIN(cudaMemcpyBatchAsync_ptsz,
     (void* const* d, const void* const* s, const size_t* n, size_t count, cudaMemcpyAttributes* a,
      size_t* i, size_t na, cudaStream_t stream),
     cudaMemcpyBatchAsync(d, s, n, count, a, i, na, per_thread(stream)))
TWIN(cudaMemsetAsync_ptsz, (void* d, int v, size_t n, cudaStream_t stream),
     cudaMemsetAsync(d, v, n, per_thread(stream)))

TWIN(cudaMallocAsync_ptsz, (void** p, size_t n, cudaStream_t stream),
     cudaMallocAsync(p, n, per_thread(stream)))
TWIN(cudaMallocFromPoolAsync_ptsz, (void** p, size_t n, cudaMemPool_t pool, cudaStream_t stream),
     cudaMallocFromPoolAsync(p, n, pool, per_thread(stream)))
TWIN(cudaFreeAsync_ptsz, (void* p, cudaStream_t stream), cudaFreeAsync(p, per_thread(stream)))

TWIN(cudaEventRecord_ptsz, (cudaEvent_t event, cudaStream_t stream),
     cudaEventRecord(event, per_thread(stream)))
TWIN(cudaEventRecordWithFlags_ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
     cudaEventRecordWithFlags(event, per_thread(stream), flags))
TWIN(cudaStreamWaitEvent_ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
     cudaStreamWaitEvent(per_thread(stream), event, flags))
TWIN(cudaStreamSynchronize_ptsz, (cudaStream_t stream), cudaStreamSynchronize(per_thread(stream)))
TWIN(cudaStreamQuery_ptsz, (cudaStream_t stream), cudaStreamQuery(per_thread(stream)))
TWIN(cudaStreamGetPriority_ptsz, (cudaStream_t stream, int* out),
     cudaStreamGetPriority(per_thread(stream), out))
TWIN(cudaStreamGetId_ptsz, (cudaStream_t stream, unsigned long long* out),
     cudaStreamGetId(per_thread(stream), out))
TWIN(cudaStreamAddCallback_ptsz,
     (cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags),
     cudaStreamAddCallback(per_thread(stream), callback, data, flags))
TWIN(cudaLaunchHostFunc_ptsz, (cudaStream_t stream, cudaHostFn_t function, void* data),
     cudaLaunchHostFunc(per_thread(stream), function, data))

TWIN(cudaLaunchKernel_ptsz,
     (const void* f, dim3 grid, dim3 block, void** a, size_t shared, cudaStream_t stream),
     cudaLaunchKernel(f, grid, block, a, shared, per_thread(stream)))
TWIN(cudaLaunchCooperativeKernel_ptsz,
     (const void* f, dim3 grid, dim3 block, void** a, size_t shared, cudaStream_t stream),
     cudaLaunchCooperativeKernel(f, grid, block, a, shared, per_thread(stream)))

TWIN(cudaStreamBeginCapture_ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode),
     cudaStreamBeginCapture(per_thread(stream), mode))
TWIN(cudaStreamEndCapture_ptsz, (cudaStream_t stream, cudaGraph_t* graph),
     cudaStreamEndCapture(per_thread(stream), graph))
TWIN(cudaStreamIsCapturing_ptsz, (cudaStream_t stream, cudaStreamCaptureStatus* status),
     cudaStreamIsCapturing(per_thread(stream), status))
TWIN(cudaStreamGetCaptureInfo_ptsz,
     (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
      cudaGraph_t* graph, const cudaGraphNode_t** after, const cudaGraphEdgeData** edges,
      size_t* count),
     cudaStreamGetCaptureInfo(per_thread(stream), status, id, graph, after, edges, count))
TWIN(cudaGraphInstantiateWithParams_ptsz,
     (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams* parameters),
     cudaGraphInstantiateWithParams(exec, graph, parameters))
TWIN(cudaGraphLaunch_ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
     cudaGraphLaunch(exec, per_thread(stream)))
