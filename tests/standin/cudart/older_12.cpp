// Functions of libcudart.so.12 only: versioned names that CUDA 13 made plain, and old structures.
#include <cstdint>
#include <cstring>

#include "cudart/entry.h"
#include "cudart/older.h"

using namespace standin;

namespace {

struct DeviceProp12 : DeviceProp11 {
  int hostRegisterSupported, unused[3], memoryPoolsSupported, rest[71];
};
static_assert(sizeof(DeviceProp12) == 1032);

}  // namespace

extern "C" {

NOW(cudaFuncGetAttributes);
NOW(cudaGraphExecUpdate);
NOW(cudaGraphInstantiate);
NOW(cudaGraphNodeGetDependencies);
cudaError_t now_copies(void* const*, const void* const*, const size_t*, size_t,
                       cudaMemcpyAttributes*, size_t*, size_t,
                       cudaStream_t) __asm__("standin_cudaMemcpyBatchAsync");
NOW(cudaStreamGetCaptureInfo);
NOW(cudaStreamUpdateCaptureDependencies);

cudaError_t version(int* version) OLD(cudaRuntimeGetVersion);
cudaError_t version(int* version) {
  *version = 12090;
  return cudaSuccess;
}

cudaError_t properties(DeviceProp12* properties, int device) OLD(cudaGetDeviceProperties_v2);
cudaError_t properties(DeviceProp12* properties, int device) {
  if (const cudaError_t error = old_device_properties(properties, device)) return error;
  std::memset(&properties->hostRegisterSupported, 0, sizeof *properties - sizeof(DeviceProp11));
  properties->hostRegisterSupported = properties->memoryPoolsSupported = 1;
  return cudaSuccess;
}

// Defines a function that behaves as today's does.
#define SAME(name, result, parameters, ...) \
  result same_##name parameters OLD(name);  \
  result same_##name parameters {           \
    return __VA_ARGS__;                     \
  }

SAME(cudaFuncGetAttributes, cudaError_t, (cudaFuncAttributes * a, const void* f),
     now_cudaFuncGetAttributes(a, f))
SAME(cudaGetDriverEntryPoint, cudaError_t,
     (const char* name, void** function, unsigned long long flags,
      cudaDriverEntryPointQueryResult* status),
     cudaGetDriverEntryPointByVersion(name, function, 12090, flags, status))
SAME(cudaGraphInstantiate, cudaError_t, (cudaGraphExec_t * e, cudaGraph_t g, unsigned long long f),
     now_cudaGraphInstantiate(e, g, f))
SAME(cudaGraphExecUpdate, cudaError_t,
     (cudaGraphExec_t e, cudaGraph_t g, cudaGraphExecUpdateResultInfo* r),
     now_cudaGraphExecUpdate(e, g, r))
SAME(cudaEventElapsedTime_v2, cudaError_t, (float* ms, cudaEvent_t start, cudaEvent_t end),
     cudaEventElapsedTime(ms, start, end))
SAME(cudaGraphNodeGetDependencies_v2, cudaError_t,
     (cudaGraphNode_t node, cudaGraphNode_t* after, cudaGraphEdgeData* edges, size_t* count),
     now_cudaGraphNodeGetDependencies(node, after, edges, count))
SAME(cudaStreamGetCaptureInfo_v3, cudaError_t,
     (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
      cudaGraph_t* graph, const cudaGraphNode_t** after, const cudaGraphEdgeData** edges,
      size_t* count),
     now_cudaStreamGetCaptureInfo(stream, status, id, graph, after, edges, count))
SAME(cudaStreamGetCaptureInfo_v3_ptsz, cudaError_t,
     (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
      cudaGraph_t* graph, const cudaGraphNode_t** after, const cudaGraphEdgeData** edges,
      size_t* count),
     now_cudaStreamGetCaptureInfo(per_thread(stream), status, id, graph, after, edges, count))
SAME(cudaStreamUpdateCaptureDependencies_v2, cudaError_t,
     (cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges, size_t count,
      unsigned flags),
     now_cudaStreamUpdateCaptureDependencies(stream, nodes, edges, count, flags))

// These reported which copy of the batch was refused, or SIZE_MAX if it was no single one.
#define BATCH(name, parameters, ...)                    \
  cudaError_t batch_##name parameters OLD(name);        \
  cudaError_t batch_##name parameters {                 \
    const cudaError_t error = __VA_ARGS__;              \
    if (error != cudaSuccess && fail) *fail = SIZE_MAX; \
    return error;                                       \
  }

BATCH(cudaMemcpyBatchAsync,
      (void** d, const void** s, size_t* n, size_t count, cudaMemcpyAttributes* a, size_t* i,
       size_t na, size_t* fail, cudaStream_t stream),
      now_copies(d, s, n, count, a, i, na, stream))
BATCH(cudaMemcpyBatchAsync_ptsz,
      (void** d, const void** s, size_t* n, size_t count, cudaMemcpyAttributes* a, size_t* i,
       size_t na, size_t* fail, cudaStream_t stream),
      now_copies(d, s, n, count, a, i, na, per_thread(stream)))

}  // extern "C"
