// Graph nodes that are made by hand.
#include <functional>
#include <map>

#include "cudart/box.h"
#include "cudart/entry.h"
#include "cudart/symbol.h"
#include "engine/copy.h"
#include "engine/graph.h"
#include "engine/model.h"

using namespace standin;

namespace {

cudaError_t add(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                Op op) {
  if (!graph) return cudaErrorInvalidValue;
  const std::lock_guard lock(engine_mutex());
  *out = add_node(*graph, std::move(op), {after, after + count}, 0);
  return cudaSuccess;
}

// Puts a copy into a graph.
using Place = std::function<cudaError_t(Op)>;

Place new_node(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* after,
               size_t count) {
  return [=](Op op) { return add(out, graph, after, count, std::move(op)); };
}
cudaError_t place(const char* function, const Region& region, cudaMemcpyKind kind,
                  const Place& put) {
  return done(place_copy(function, region, kind, put));
}
cudaError_t place_box(const char* function, const cudaMemcpy3DParms* p, const Place& put) {
  return p ? place(function, box_region(*p), p->kind, put) : done(cudaErrorInvalidValue);
}
cudaError_t place_symbol(const char* function, void* dst, const void* src, size_t count,
                         size_t offset, bool to_symbol, cudaMemcpyKind kind, const Place& put) {
  Region region{dst, src, count};
  const cudaError_t error = symbol_region(&region, offset, to_symbol);
  return error ? done(error) : place(function, region, kind, put);
}

// The value that each conditional handle was created with.
std::map<cudaGraphConditionalHandle, unsigned>& conditions() {
  static auto& all = *new std::map<cudaGraphConditionalHandle, unsigned>;
  return all;
}

cudaError_t add_conditional(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* after,
                            size_t count, cudaConditionalNodeParams& p) {
  const std::lock_guard lock(engine_mutex());
  const auto condition = conditions().find(p.handle);
  if (condition == conditions().end() || p.size == 0) return cudaErrorInvalidValue;
  // No kernel here sets a condition, so a loop would run forever, and no client has a switch.
  if (p.type != cudaGraphCondTypeIf) return cudaErrorNotSupported;
  const cudaError_t error = add(out, graph, after, count, {.type = cudaGraphNodeTypeConditional});
  if (error) return error;
  for (unsigned i = 0; i < p.size; ++i) (*out)->bodies.push_back(new CUgraph_st);
  p.phGraph_out = (*out)->bodies.data();
  (*out)->chosen = condition->second != 0 ? 0 : p.size;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                  const cudaGraphNode_t* after, size_t count) {
  return done(add(out, graph, after, count, {}));
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                 const cudaGraphNode_t* after, size_t count,
                                 const cudaHostNodeParams* host) {
  return done(add(out, graph, after, count,
                  {.run =
                       [fn = host->fn, data = host->userData] {
                         fn(data);
                         return cudaSuccess;
                       },
                   .type = cudaGraphNodeTypeHost}));
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, size_t count, void* dst,
                                     const void* src, size_t bytes, cudaMemcpyKind kind) {
  return place("cudaGraphAddMemcpyNode1D", {dst, src, bytes}, kind,
               new_node(out, graph, after, count));
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       cudaGraph_t child) {
  if (!child) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  cudaGraph_t copy = clone_graph(*child);
  const cudaError_t error = add(out, graph, after, count, {.type = cudaGraphNodeTypeGraph});
  if (error == cudaSuccess) (*out)->child = copy;
  if (error) delete copy;
  return done(error);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, size_t count,
                                   const cudaMemcpy3DParms* p) {
  return place_box("cudaGraphAddMemcpyNode", p, new_node(out, graph, after, count));
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* out, cudaGraph_t graph,
                                           const cudaGraphNode_t* after, size_t count,
                                           const void* symbol, const void* src, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind) {
  return place_symbol("cudaGraphAddMemcpyNodeToSymbol", const_cast<void*>(symbol), src, bytes,
                      offset, true, kind, new_node(out, graph, after, count));
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* out, cudaGraph_t graph,
                                             const cudaGraphNode_t* after, size_t count, void* dst,
                                             const void* symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind) {
  return place_symbol("cudaGraphAddMemcpyNodeFromSymbol", dst, symbol, bytes, offset, false, kind,
                      new_node(out, graph, after, count));
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* out, cudaGraph_t graph,
                                             unsigned value, unsigned flags) {
  if (!out || !graph) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  *out = conditions().size() + 1;
  conditions()[*out] = flags == cudaGraphCondAssignDefault ? value : 0;
  return cudaSuccess;
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* params) {
  if (!out || !graph || !params) return done(cudaErrorInvalidValue);
  switch (params->type) {
    case cudaGraphNodeTypeEmpty:
      return done(add(out, graph, after, count, {}));
    case cudaGraphNodeTypeMemcpy:
      return place_box("cudaGraphAddNode", &params->memcpy.copyParams,
                       new_node(out, graph, after, count));
    case cudaGraphNodeTypeConditional:
      return done(add_conditional(out, graph, after, count, params->conditional));
    default:
      return done(cudaErrorNotSupported);
  }
}

}  // extern "C"
