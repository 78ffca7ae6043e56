// The wrappers of the driver's stream captures and graph launches. Without TPROF_DRIVER=1 they pass
// every call straight through; with it they report those that come from no wrapper, as a runtime
// makes them that is linked in.
#include "interpose/hook/any_cuda.h"

using tprof::driver_thread;
using tprof::legacy;
using tprof::per_thread;
using tprof::Thread;
namespace graphs = tprof::graphs;

namespace {

template <typename F>
CUresult capturing(F&& real, CUstream stream, bool into_existing_graph) {
  if (driver_thread() == nullptr) return real();
  graphs::g_any_capture.store(true, std::memory_order_relaxed);
  const CUresult result = real();
  if (result == CUDA_SUCCESS) graphs::began(stream, into_existing_graph);
  return result;
}

CUresult instantiated(CUresult result, const CUgraphExec* executable, CUgraph graph,
                      unsigned long long flags) {
  return tprof::told(result, [&] {
    graphs::instantiated(*executable, graph,
                         (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0);
  });
}

}  // namespace

#define X(function, meant)                                                \
  ANY(function, (CUstream stream)) {                                      \
    TPROF_REAL_CUDA(function, CUresult (*)(CUstream))                     \
    return capturing([&] { return real(stream); }, meant(stream), false); \
  }
X(cuStreamBeginCapture, legacy)
X(cuStreamBeginCapture_ptsz, per_thread)
#undef X

#define X(function, meant)                                                      \
  ANY(function, (CUstream stream, CUstreamCaptureMode mode)) {                  \
    using Type = CUresult (*)(CUstream, CUstreamCaptureMode);                   \
    TPROF_REAL_CUDA(function, Type)                                             \
    return capturing([&] { return real(stream, mode); }, meant(stream), false); \
  }
X(cuStreamBeginCapture_v2, legacy)
X(cuStreamBeginCapture_v2_ptsz, per_thread)
#undef X

#define X(function, meant)                                                                      \
  ANY(function, (CUstream stream, CUgraph graph, const CUgraphNode* after, const void* edges,   \
                 size_t n, CUstreamCaptureMode mode)) {                                         \
    using Type = CUresult (*)(CUstream, CUgraph, const CUgraphNode*, const void*, size_t,       \
                              CUstreamCaptureMode);                                             \
    TPROF_REAL_CUDA(function, Type)                                                             \
    return capturing([&] { return real(stream, graph, after, edges, n, mode); }, meant(stream), \
                     true);                                                                     \
  }
X(cuStreamBeginCaptureToGraph, legacy)
X(cuStreamBeginCaptureToGraph_ptsz, per_thread)
#undef X

#define X(function, meant)                                                                       \
  ANY(function, (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, const void* callback, \
                 void* data)) {                                                                  \
    using Type = CUresult (*)(CUstream, CUstreamCaptureMode, CUgraph, const void*, void*);       \
    TPROF_REAL_CUDA(function, Type)                                                              \
    return capturing([&] { return real(stream, mode, graph, callback, data); }, meant(stream),   \
                     false);                                                                     \
  }
X(cuStreamBeginRecaptureToGraph, legacy)
X(cuStreamBeginRecaptureToGraph_ptsz, per_thread)
#undef X

#define X(function, meant)                                        \
  ANY(function, (CUstream stream, CUgraph * graph)) {             \
    using Type = CUresult (*)(CUstream, CUgraph*);                \
    TPROF_REAL_CUDA(function, Type)                               \
    if (driver_thread() == nullptr) return real(stream, graph);   \
    const graphs::Ending ending = graphs::ending(meant(stream));  \
    const CUresult result = real(stream, graph);                  \
    const bool made = result == CUDA_SUCCESS && graph != nullptr; \
    graphs::ended(ending, made ? *graph : nullptr);               \
    return result;                                                \
  }
X(cuStreamEndCapture, legacy)
X(cuStreamEndCapture_ptsz, per_thread)
#undef X

#define X(function)                                                                              \
  ANY(function, (CUgraphExec * executable, CUgraph graph, void* node, void* log, size_t size)) { \
    using Type = CUresult (*)(CUgraphExec*, CUgraph, void*, void*, size_t);                      \
    TPROF_REAL_CUDA(function, Type)                                                              \
    return instantiated(real(executable, graph, node, log, size), executable, graph, 0);         \
  }
X(cuGraphInstantiate)
X(cuGraphInstantiate_v2)
#undef X

ANY(cuGraphInstantiateWithFlags,
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags)) {
  using Type = CUresult (*)(CUgraphExec*, CUgraph, unsigned long long);
  TPROF_REAL_CUDA(cuGraphInstantiateWithFlags, Type)
  return instantiated(real(executable, graph, flags), executable, graph, flags);
}

#define X(function)                                                                     \
  ANY(function, (CUgraphExec * executable, CUgraph graph, cuuint64_t * parameters)) {   \
    using Type = CUresult (*)(CUgraphExec*, CUgraph, cuuint64_t*);                      \
    TPROF_REAL_CUDA(function, Type)                                                     \
    /* CUDA_GRAPH_INSTANTIATE_PARAMS begins with the flags. */                          \
    const unsigned long long flags = parameters == nullptr ? 0 : *parameters;           \
    return instantiated(real(executable, graph, parameters), executable, graph, flags); \
  }
X(cuGraphInstantiateWithParams)
X(cuGraphInstantiateWithParams_ptsz)
#undef X

#define X(function, meant)                                                               \
  ANY(function, (CUgraphExec executable, CUstream stream)) {                             \
    using Type = CUresult (*)(CUgraphExec, CUstream);                                    \
    TPROF_REAL_CUDA(function, Type)                                                      \
    Thread* t = driver_thread();                                                         \
    if (t == nullptr) return real(executable, stream);                                   \
    return static_cast<CUresult>(tprof::launch_call(*t, executable, meant(stream), [&] { \
      return static_cast<cudaError_t>(real(executable, stream));                         \
    }));                                                                                 \
  }
X(cuGraphLaunch, legacy)
X(cuGraphLaunch_ptsz, per_thread)
#undef X

// Before the real call, since after it the handle can be another's.
#define X(function, Handle)                                     \
  ANY(function, (Handle handle)) {                              \
    using Type = CUresult (*)(Handle);                          \
    TPROF_REAL_CUDA(function, Type)                             \
    if (driver_thread() != nullptr) graphs::destroying(handle); \
    return real(handle);                                        \
  }
X(cuGraphDestroy, CUgraph)
X(cuGraphExecDestroy, CUgraphExec)
#undef X
