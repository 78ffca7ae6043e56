// The wrappers of nodes that are put into graphs by hand: those of copies generated from
// api/cudart.h, and those of nodes of any kind.
#include "interpose/capture/batch.h"
#include "interpose/capture/box.h"
#include "interpose/hook/wrapper.h"

using tprof::CopyArgs;
using tprof::Fn;
using tprof::Thread;
using tprof::Word;
using namespace tprof::graphs;

#define X(function, since, parameters, arguments, reading, placing)                 \
  extern "C" cudaError_t function parameters;                                       \
  TPROF_EXPORT cudaError_t function parameters {                                    \
    TPROF_REAL_CUDART(function)                                                     \
    Thread* t = tprof::recording_thread();                                          \
    if (t == nullptr) TPROF_PASS_ON(real arguments);                                \
    const CopyArgs a TPROF_UNPAREN reading;                                         \
    return tprof::node_call<Fn::function>(                                          \
        *t, a, [&] { return real arguments; }, [&](const Call& call) { placing; }); \
  }
using tprof::box_copy;
TPROF_CUDART_NODE(X)
#undef X

namespace {

// cudaGraphNodeParams, which is equal in all versions that have it, up to what was added at ends.
struct NodeParams {
  struct Copy {
    int reserved[4];
    cudaMemcpy3DParms box;
  };
  struct Child {
    cudaGraph_t graph;
    int ownership;  // since CUDA 12.9; before, and by default, 0
  };
  struct Conditional {
    std::uint64_t handle;
    int type;
    unsigned size;
    cudaGraph_t* graphs;  // filled by the call
  };
  int type;
  int reserved[3];
  union {
    Copy copy;
    Child child;
    Conditional conditional;
  };
};
enum NodeType { kMemcpy = 1, kChild = 4, kConditional = 13 };
constexpr int kMoved = 1;

template <Fn kFunction, typename F, typename G>
cudaError_t copy_node(Thread& t, const NodeParams& p, F&& real, G&& placed) {
  return tprof::node_call<kFunction>(t, box_copy(&p.copy.box, nullptr, false), real, placed);
}

template <Fn kFunction, typename F>
cudaError_t add_node(Thread& t, const cudaGraphNode_t* node, cudaGraph_t graph, const NodeParams* p,
                     F&& real) {
  if (p == nullptr) return real();
  const int type = p->type;
  if (type == kMemcpy) {
    return copy_node<kFunction>(t, *p, real,
                                [&](const Call& call) { copy_added(graph, *node, call); });
  }
  cudaGraph_t child = type == kChild ? p->child.graph : nullptr;
  const cudaError_t result = real();
  if (result != cudaSuccess) return result;
  if (type == kChild) child_added(graph, *node, child, p->child.ownership == kMoved);
  for (unsigned i = 0; type == kConditional && i < p->conditional.size; ++i) {
    body_added(graph, *node, p->conditional.graphs[i]);
  }
  if (type > kConditional) unknown_added(graph);
  return result;
}

}  // namespace

// CUDA 12: (node, graph, after, n, parameters); 13, and the _v2 of 12.3: (node, graph, after,
// edges, n, parameters). All are passed on; what they mean follows from the library's version.
#define X(function, parameters)                                                                   \
  TPROF_EXPORT cudaError_t tprof_##function(cudaGraphNode_t* node, cudaGraph_t graph, Word after, \
                                            Word fourth, Word fifth,                              \
                                            Word sixth) __asm__(#function);                       \
  TPROF_EXPORT cudaError_t tprof_##function(cudaGraphNode_t* node, cudaGraph_t graph, Word after, \
                                            Word fourth, Word fifth, Word sixth) {                \
    using Type = cudaError_t (*)(cudaGraphNode_t*, cudaGraph_t, Word, Word, Word, Word);          \
    TPROF_REAL_OF(function, tprof_##function, Type, cudaErrorSharedObjectSymbolNotFound)          \
    Thread* t = tprof::recording_thread();                                                        \
    const auto call = [&] { return real(node, graph, after, fourth, fifth, sixth); };             \
    if (t == nullptr) return call();                                                              \
    static constinit tprof::resolve::VersionCache version{};                                      \
    [[maybe_unused]] const int cuda =                                                             \
        tprof::resolve::version(reinterpret_cast<void*>(real), version);                          \
    Word const p = parameters;                                                                    \
    if (p == nullptr) unknown_added(graph);                                                       \
    return add_node<Fn::function>(*t, node, graph, static_cast<const NodeParams*>(p), call);      \
  }
X(cudaGraphAddNode, cuda == 12 ? fifth : cuda == 13 ? sixth : nullptr)
X(cudaGraphAddNode_v2, sixth)
#undef X

#if CUDART_VERSION >= 12020
static_assert(offsetof(NodeParams, copy.box) == offsetof(cudaGraphNodeParams, memcpy.copyParams) &&
              offsetof(NodeParams, child.graph) == offsetof(cudaGraphNodeParams, graph.graph) &&
              offsetof(NodeParams, conditional.graphs) ==
                  offsetof(cudaGraphNodeParams, conditional.phGraph_out));

TPROF_EXPORT cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  TPROF_REAL_CUDART(cudaGraphNodeSetParams)
  Thread* t = tprof::recording_thread();
  const auto call = [&] { return real(node, params); };
  if (t == nullptr || params == nullptr) return call();
  const auto& p = *reinterpret_cast<const NodeParams*>(params);
  if (p.type == kMemcpy) {
    return copy_node<Fn::cudaGraphNodeSetParams>(*t, p, call,
                                                 [&](const Call& c) { copy_changed(node, c); });
  }
  const cudaError_t result = call();
  if (result == cudaSuccess && p.type == kChild) child_changed(node);
  return result;
}

TPROF_EXPORT cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable,
                                                    cudaGraphNode_t node,
                                                    cudaGraphNodeParams* params) {
  TPROF_REAL_CUDART(cudaGraphExecNodeSetParams)
  Thread* t = tprof::recording_thread();
  const auto call = [&] { return real(executable, node, params); };
  if (t == nullptr || params == nullptr) return call();
  const auto& p = *reinterpret_cast<const NodeParams*>(params);
  if (p.type == kMemcpy) {
    return copy_node<Fn::cudaGraphExecNodeSetParams>(
        *t, p, call, [&](const Call& c) { copy_changed(executable, node, c); });
  }
  const cudaError_t result = call();
  if (result == cudaSuccess && p.type == kChild) {
    child_changed(executable, node, p.child.graph);
  }
  return result;
}
#endif
