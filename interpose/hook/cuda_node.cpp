// The wrappers of the driver's functions that make and change graphs by hand. Without
// TPROF_DRIVER=1 they pass every call straight through.
#include "interpose/driver/box.h"
#include "interpose/hook/any_cuda.h"

using tprof::box_copy;
using tprof::CopyArgs;
using tprof::Fn;
using tprof::recording_driver;
using tprof::Thread;
using tprof::told;
using namespace tprof::graphs;

#define X(function, since, parameters, arguments, reading, placing)                 \
  ANY(function, parameters) {                                                       \
    using Type = CUresult(*) parameters;                                            \
    TPROF_REAL_CUDA(function, Type)                                                 \
    Thread* t = recording_driver();                                                 \
    if (t == nullptr) return real arguments;                                        \
    const CopyArgs a = TPROF_UNPAREN reading;                                       \
    return tprof::node_call<Fn::function>(                                          \
        *t, a, [&] { return real arguments; }, [&](const Call& call) { placing; }); \
  }
TPROF_CUDA_NODE(X)
#undef X

#if CUDA_VERSION >= 12020
ANY(cuGraphExecNodeSetParams, (CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* p)) {
  using Type = CUresult (*)(CUgraphExec, CUgraphNode, CUgraphNodeParams*);
  TPROF_REAL_CUDA(cuGraphExecNodeSetParams, Type)
  Thread* t = recording_driver();
  const auto call = [&] { return real(executable, node, p); };
  if (t == nullptr || p == nullptr) return call();
  if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    const CopyArgs a = box_copy(&p->memcpy.copyParams, nullptr, false);
    return tprof::node_call<Fn::cuGraphExecNodeSetParams>(
        *t, a, call, [&](const Call& copy) { copy_changed(executable, node, copy); });
  }
  const CUresult result = call();
  if (result == CUDA_SUCCESS && p->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    child_changed(executable, node, p->graph.graph);
  }
  return result;
}
#endif

ANY(cuGraphClone, (CUgraph * clone, CUgraph original)) {
  using Type = CUresult (*)(CUgraph*, CUgraph);
  TPROF_REAL_CUDA(cuGraphClone, Type)
  return told(real(clone, original), [&] { cloned(*clone, original); });
}

ANY(cuGraphAddChildGraphNode,
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t n, CUgraph child)) {
  using Type = CUresult (*)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraph);
  TPROF_REAL_CUDA(cuGraphAddChildGraphNode, Type)
  return told(real(node, graph, after, n, child), [&] { child_added(graph, *node, child, false); });
}

ANY(cuGraphDestroyNode, (CUgraphNode node)) {
  using Type = CUresult (*)(CUgraphNode);
  TPROF_REAL_CUDA(cuGraphDestroyNode, Type)
  if (recording_driver() == nullptr) return real(node);
  const tprof::GraphId from = removing(node);
  const CUresult result = real(node);
  if (result != CUDA_SUCCESS) not_removed(from);
  return result;
}

// CUDA 10.2 gives it four arguments, 12.0 three: all are passed on.
#define X(function)                                                                           \
  ANY(function, (CUgraphExec executable, CUgraph graph, void* third, void* fourth)) {         \
    using Type = CUresult (*)(CUgraphExec, CUgraph, void*, void*);                            \
    TPROF_REAL_CUDA(function, Type)                                                           \
    return told(real(executable, graph, third, fourth), [&] { updated(executable, graph); }); \
  }
X(cuGraphExecUpdate)
X(cuGraphExecUpdate_v2)
#undef X

ANY(cuGraphExecChildGraphNodeSetParams, (CUgraphExec executable, CUgraphNode node, CUgraph child)) {
  using Type = CUresult (*)(CUgraphExec, CUgraphNode, CUgraph);
  TPROF_REAL_CUDA(cuGraphExecChildGraphNodeSetParams, Type)
  return told(real(executable, node, child), [&] { child_changed(executable, node, child); });
}

ANY(cuGraphNodeSetEnabled, (CUgraphExec executable, CUgraphNode node, unsigned on)) {
  using Type = CUresult (*)(CUgraphExec, CUgraphNode, unsigned);
  TPROF_REAL_CUDA(cuGraphNodeSetEnabled, Type)
  return told(real(executable, node, on), [&] { enabled(executable, node, on != 0); });
}
