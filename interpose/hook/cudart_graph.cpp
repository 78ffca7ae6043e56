// The wrappers of stream capture and of CUDA graphs.
#include "interpose/hook/wrapper.h"

using tprof::legacy;
using tprof::per_thread;
using tprof::Thread;
namespace graphs = tprof::graphs;

// Declared with the plain functions' types: cuda_runtime_api.h names them only by macro.
extern "C" {
decltype(::cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
decltype(::cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
decltype(::cudaGraphLaunch) cudaGraphLaunch_ptsz;
decltype(::cudaGraphInstantiateWithParams) cudaGraphInstantiateWithParams_ptsz;
}

namespace {

bool recording() {
  return tprof::recording_thread() != nullptr;
}

// Tells `report` of what has worked.
template <typename F>
cudaError_t told(cudaError_t result, F&& report) {
  if (result == cudaSuccess && recording()) report();
  return result;
}

}  // namespace

#define X(function, meant)                                                             \
  TPROF_EXPORT cudaError_t function(cudaStream_t stream, cudaStreamCaptureMode mode) { \
    TPROF_REAL_CUDART(function)                                                        \
    graphs::g_any_capture.store(true, std::memory_order_relaxed);                      \
    return told(real(stream, mode), [&] { graphs::began(meant(stream), false); });     \
  }
X(cudaStreamBeginCapture, legacy)
X(cudaStreamBeginCapture_ptsz, per_thread)
#undef X

#if CUDART_VERSION >= 12030
extern "C" decltype(::cudaStreamBeginCaptureToGraph) cudaStreamBeginCaptureToGraph_ptsz;
#define X(function, meant)                                                         \
  TPROF_EXPORT cudaError_t function(                                               \
      cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies, \
      const cudaGraphEdgeData* edges, size_t n, cudaStreamCaptureMode mode) {      \
    TPROF_REAL_CUDART(function)                                                    \
    graphs::g_any_capture.store(true, std::memory_order_relaxed);                  \
    return told(real(stream, graph, dependencies, edges, n, mode),                 \
                [&] { graphs::began(meant(stream), true); });                      \
  }
X(cudaStreamBeginCaptureToGraph, legacy)
X(cudaStreamBeginCaptureToGraph_ptsz, per_thread)
#undef X
#endif

// What is captured takes the place of all that was in the graph.
struct cudaGraphRecaptureCallbackData;  // of CUDA 13.3; only ever passed on
#define X(function, meant)                                                                         \
  extern "C" cudaError_t function(cudaStream_t, cudaStreamCaptureMode, cudaGraph_t,                \
                                  cudaGraphRecaptureCallbackData*);                                \
  TPROF_EXPORT cudaError_t function(cudaStream_t stream, cudaStreamCaptureMode mode,               \
                                    cudaGraph_t graph, cudaGraphRecaptureCallbackData* callback) { \
    TPROF_REAL_CUDART(function)                                                                    \
    graphs::g_any_capture.store(true, std::memory_order_relaxed);                                  \
    return told(real(stream, mode, graph, callback),                                               \
                [&] { graphs::began(meant(stream), false); });                                     \
  }
X(cudaStreamBeginRecaptureToGraph, legacy)
X(cudaStreamBeginRecaptureToGraph_ptsz, per_thread)
#undef X

#define X(function, meant)                                                     \
  TPROF_EXPORT cudaError_t function(cudaStream_t stream, cudaGraph_t* graph) { \
    TPROF_REAL_CUDART(function)                                                \
    if (!recording()) return real(stream, graph);                              \
    const graphs::Ending ending = graphs::ending(meant(stream));               \
    const cudaError_t result = real(stream, graph);                            \
    const bool made = result == cudaSuccess && graph != nullptr;               \
    graphs::ended(ending, made ? *graph : nullptr);                            \
    return result;                                                             \
  }
X(cudaStreamEndCapture, legacy)
X(cudaStreamEndCapture_ptsz, per_thread)
#undef X

TPROF_EXPORT cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  TPROF_REAL_CUDART(cudaGraphCreate)
  return told(real(graph, flags), [&] { graphs::created(*graph); });
}

TPROF_EXPORT cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  TPROF_REAL_CUDART(cudaGraphClone)
  return told(real(clone, original), [&] { graphs::cloned(*clone, original); });
}

TPROF_EXPORT cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                    const cudaGraphNode_t* after, size_t n,
                                                    cudaGraph_t child) {
  TPROF_REAL_CUDART(cudaGraphAddChildGraphNode)
  return told(real(node, graph, after, n, child),
              [&] { graphs::child_added(graph, *node, child, false); });
}

TPROF_EXPORT cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  TPROF_REAL_CUDART(cudaGraphDestroyNode)
  if (!recording()) return real(node);
  const tprof::GraphId from = graphs::removing(node);
  const cudaError_t result = real(node);
  if (result != cudaSuccess) graphs::not_removed(from);
  return result;
}

TPROF_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  TPROF_REAL_CUDART(cudaGraphDestroy)
  if (tprof::session::started()) graphs::destroying(graph);
  return real(graph);
}

namespace {

cudaError_t instantiated(cudaError_t result, const cudaGraphExec_t* executable, cudaGraph_t graph,
                         unsigned long long flags) {
  return told(result, [&] {
    graphs::instantiated(*executable, graph, (flags & cudaGraphInstantiateFlagDeviceLaunch) != 0);
  });
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
  // The third is the flags, or in CUDA 11 an address or null: no address is as small as a flag.
  const auto flags = reinterpret_cast<std::uintptr_t>(third);
  constexpr std::uintptr_t kFlags = 0xfff;
  return instantiated(real(executable, graph, third, fourth, fifth), executable, graph,
                      flags <= kFlags ? flags : 0);
}

TPROF_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable,
                                                       cudaGraph_t graph,
                                                       unsigned long long flags) {
  TPROF_REAL_CUDART(cudaGraphInstantiateWithFlags)
  return instantiated(real(executable, graph, flags), executable, graph, flags);
}

#define X(function)                                                                 \
  TPROF_EXPORT cudaError_t function(cudaGraphExec_t* executable, cudaGraph_t graph, \
                                    cudaGraphInstantiateParams* params) {           \
    TPROF_REAL_CUDART(function)                                                     \
    const unsigned long long flags = params == nullptr ? 0 : params->flags;         \
    return instantiated(real(executable, graph, params), executable, graph, flags); \
  }
X(cudaGraphInstantiateWithParams)
X(cudaGraphInstantiateWithParams_ptsz)
#undef X

// CUDA 11 gives it four arguments, later versions three: all are passed on.
TPROF_EXPORT cudaError_t tprof_cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                                   void* third,
                                                   void* fourth) __asm__("cudaGraphExecUpdate");
TPROF_EXPORT cudaError_t tprof_cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                                   void* third, void* fourth) {
  using Update = cudaError_t (*)(cudaGraphExec_t, cudaGraph_t, void*, void*);
  TPROF_REAL_OF(cudaGraphExecUpdate, tprof_cudaGraphExecUpdate, Update,
                cudaErrorSharedObjectSymbolNotFound)
  return told(real(executable, graph, third, fourth), [&] { graphs::updated(executable, graph); });
}

TPROF_EXPORT cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable,
                                                              cudaGraphNode_t node,
                                                              cudaGraph_t child) {
  TPROF_REAL_CUDART(cudaGraphExecChildGraphNodeSetParams)
  return told(real(executable, node, child),
              [&] { graphs::child_changed(executable, node, child); });
}

TPROF_EXPORT cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 unsigned int enabled) {
  TPROF_REAL_CUDART(cudaGraphNodeSetEnabled)
  return told(real(executable, node, enabled),
              [&] { graphs::enabled(executable, node, enabled != 0); });
}

TPROF_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  TPROF_REAL_CUDART(cudaGraphExecDestroy)
  if (tprof::session::started()) graphs::destroying(executable);
  return real(executable);
}

#define X(function, meant)                                                             \
  TPROF_EXPORT cudaError_t function(cudaGraphExec_t executable, cudaStream_t stream) { \
    TPROF_REAL_CUDART(function)                                                        \
    Thread* t = tprof::recording_thread();                                             \
    if (t == nullptr) return real(executable, stream);                                 \
    return tprof::launch_call(*t, executable, meant(stream),                           \
                              [&] { return real(executable, stream); });               \
  }
X(cudaGraphLaunch, legacy)
X(cudaGraphLaunch_ptsz, per_thread)
#undef X
