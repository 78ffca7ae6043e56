// The wrappers of stream capture and of CUDA graphs.
#include "wrapper.h"

using tprof::Thread;
namespace graphs = tprof::graphs;

// Declared with the plain functions' types: cuda_runtime_api.h names them only by macro.
extern "C" {
decltype(::cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
decltype(::cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
decltype(::cudaGraphLaunch) cudaGraphLaunch_ptsz;
decltype(::cudaGraphInstantiateWithParams) cudaGraphInstantiateWithParams_ptsz;
}

#define X(function)                                                                    \
  TPROF_EXPORT cudaError_t function(cudaStream_t stream, cudaStreamCaptureMode mode) { \
    TPROF_REAL_CUDART(function)                                                        \
    graphs::g_any_capture.store(true, std::memory_order_relaxed);                      \
    return real(stream, mode);                                                         \
  }
X(cudaStreamBeginCapture)
X(cudaStreamBeginCapture_ptsz)
#undef X

#if CUDART_VERSION >= 12030
extern "C" decltype(::cudaStreamBeginCaptureToGraph) cudaStreamBeginCaptureToGraph_ptsz;
#define X(function)                                                                \
  TPROF_EXPORT cudaError_t function(                                               \
      cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies, \
      const cudaGraphEdgeData* edges, size_t n, cudaStreamCaptureMode mode) {      \
    TPROF_REAL_CUDART(function)                                                    \
    graphs::g_any_capture.store(true, std::memory_order_relaxed);                  \
    return real(stream, graph, dependencies, edges, n, mode);                      \
  }
X(cudaStreamBeginCaptureToGraph)
X(cudaStreamBeginCaptureToGraph_ptsz)
#undef X
#endif

#define X(function)                                                            \
  TPROF_EXPORT cudaError_t function(cudaStream_t stream, cudaGraph_t* graph) { \
    TPROF_REAL_CUDART(function)                                                \
    const Thread* t = tprof::recording_thread();                               \
    if (t == nullptr) return real(stream, graph);                              \
    const std::uint32_t captured = graphs::ending(stream);                     \
    const cudaError_t result = real(stream, graph);                            \
    const bool made = result == cudaSuccess && graph != nullptr;               \
    graphs::ended(captured, made ? *graph : nullptr);                          \
    return result;                                                             \
  }
X(cudaStreamEndCapture)
X(cudaStreamEndCapture_ptsz)
#undef X

namespace {

cudaError_t instantiated(cudaError_t result, const cudaGraphExec_t* executable, cudaGraph_t graph) {
  if (result == cudaSuccess && executable != nullptr && tprof::recording_thread() != nullptr) {
    graphs::instantiated(*executable, graph);
  }
  return result;
}

// CUDA 11 gives cudaGraphInstantiate five arguments, later versions three: all are passed on.
using Instantiate = cudaError_t (*)(cudaGraphExec_t*, cudaGraph_t, void*, void*, size_t);

}  // namespace

TPROF_EXPORT cudaError_t tprof_cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                    void* third, void* fourth,
                                                    size_t fifth) __asm__("cudaGraphInstantiate");
TPROF_EXPORT cudaError_t tprof_cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                    void* third, void* fourth, size_t fifth) {
  TPROF_REAL_OF(cudaGraphInstantiate, tprof_cudaGraphInstantiate, Instantiate,
                cudaErrorSharedObjectSymbolNotFound)
  return instantiated(real(executable, graph, third, fourth, fifth), executable, graph);
}

TPROF_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable,
                                                       cudaGraph_t graph,
                                                       unsigned long long flags) {
  TPROF_REAL_CUDART(cudaGraphInstantiateWithFlags)
  return instantiated(real(executable, graph, flags), executable, graph);
}

#define X(function)                                                                 \
  TPROF_EXPORT cudaError_t function(cudaGraphExec_t* executable, cudaGraph_t graph, \
                                    cudaGraphInstantiateParams* params) {           \
    TPROF_REAL_CUDART(function)                                                     \
    return instantiated(real(executable, graph, params), executable, graph);        \
  }
X(cudaGraphInstantiateWithParams)
X(cudaGraphInstantiateWithParams_ptsz)
#undef X

#define X(function)                                                                              \
  TPROF_EXPORT cudaError_t function(cudaGraphExec_t executable, cudaStream_t stream) {           \
    TPROF_REAL_CUDART(function)                                                                  \
    Thread* t = tprof::recording_thread();                                                       \
    if (t == nullptr) return real(executable, stream);                                           \
    return tprof::launch_call(*t, executable, stream, [&] { return real(executable, stream); }); \
  }
X(cudaGraphLaunch)
X(cudaGraphLaunch_ptsz)
#undef X

TPROF_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  TPROF_REAL_CUDART(cudaGraphDestroy)
  if (tprof::session::started()) graphs::destroyed(graph);
  return real(graph);
}

TPROF_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  TPROF_REAL_CUDART(cudaGraphExecDestroy)
  if (tprof::session::started()) graphs::destroyed(executable);
  return real(executable);
}
