// Graphs that are made and changed by hand through the driver.
#include <functional>

#include "driver/box.h"
#include "driver/entry.h"
#include "engine/device.h"
#include "engine/graph.h"

using namespace standin;

namespace {

CUresult add(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, Op op) {
  if (!out || !graph) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(engine_mutex());
  *out = add_node(*graph, std::move(op), {after, after + count}, 0);
  return CUDA_SUCCESS;
}

// Changes a node's twin in an executable that was made from the node's graph.
template <class Change>
CUresult change(CUgraphExec exec, CUgraphNode node, Change apply) {
  const std::lock_guard lock(engine_mutex());
  CUgraphNode_st* twin = exec ? find_twin(*exec->graph, node) : nullptr;
  if (!twin) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = apply(*twin);
  if (result == CUDA_SUCCESS) lay_out(*exec, current_device());
  return result;
}

CUresult place(const char* function, const CUDA_MEMCPY3D* box,
               const std::function<CUresult(Op)>& put) {
  if (!box) return CUDA_ERROR_INVALID_VALUE;
  return as_driver(place_copy(function, block(*box), kind_of(*box),
                              [&](Op op) { return static_cast<cudaError_t>(put(std::move(op))); }));
}

CUresult change_copy(const char* function, CUgraphExec exec, CUgraphNode node,
                     const CUDA_MEMCPY3D* box) {
  return place(function, box, [=](Op op) {
    return change(exec, node, [&](CUgraphNode_st& twin) {
      if (twin.op.type != cudaGraphNodeTypeMemcpy) return CUDA_ERROR_INVALID_VALUE;
      twin.op = std::move(op);
      return CUDA_SUCCESS;
    });
  });
}

}  // namespace

STANDIN_ENTRY(cuGraphAddMemcpyNode,
              (CUgraphNode * out, CUgraph graph, const CUgraphNode* after, size_t count,
               const CUDA_MEMCPY3D* box, CUcontext),
              place("cuGraphAddMemcpyNode", box,
                    [=](Op op) { return add(out, graph, after, count, std::move(op)); }))
STANDIN_ENTRY(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D* box),
              place("cuGraphMemcpyNodeSetParams", box, [=](Op op) {
                if (!node || node->op.type != cudaGraphNodeTypeMemcpy) {
                  return CUDA_ERROR_INVALID_VALUE;
                }
                const std::lock_guard lock(engine_mutex());
                node->op = std::move(op);
                return CUDA_SUCCESS;
              }))
STANDIN_ENTRY(cuGraphExecMemcpyNodeSetParams,
              (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* box, CUcontext),
              change_copy("cuGraphExecMemcpyNodeSetParams", exec, node, box))
STANDIN_ENTRY(cuGraphExecNodeSetParams,
              (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params),
              params && params->type == CU_GRAPH_NODE_TYPE_MEMCPY
                  ? change_copy("cuGraphExecNodeSetParams", exec, node, &params->memcpy.copyParams)
                  : CUDA_ERROR_NOT_SUPPORTED)
STANDIN_ENTRY(cuGraphExecChildGraphNodeSetParams,
              (CUgraphExec exec, CUgraphNode node, CUgraph child),
              change(exec, node, [&](CUgraphNode_st& twin) {
                const bool alike = child && twin.child && copy_parameters(*twin.child, *child);
                return alike ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
              }))
STANDIN_ENTRY(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned enabled),
              change(exec, node, [=](CUgraphNode_st& twin) {
                twin.enabled = enabled != 0;
                return CUDA_SUCCESS;
              }))

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  *graph = new CUgraph_st;
  return CUDA_SUCCESS;
}
CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                             size_t count) {
  return add(out, graph, after, count, {});
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS*) {
  return add(out, graph, after, count, {.type = cudaGraphNodeTypeKernel});
}

}  // extern "C"

STANDIN_ENTRY(cuGraphClone, (CUgraph * clone, CUgraph graph), [=] {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(engine_mutex());
  *clone = clone_graph(*graph);
  return CUDA_SUCCESS;
}())
STANDIN_ENTRY(cuGraphAddChildGraphNode,
              (CUgraphNode * out, CUgraph graph, const CUgraphNode* after, size_t count,
               CUgraph child),
              [=] {
                if (!child) return CUDA_ERROR_INVALID_VALUE;
                const std::lock_guard lock(engine_mutex());
                const CUresult result =
                    add(out, graph, after, count, {.type = cudaGraphNodeTypeGraph});
                if (result == CUDA_SUCCESS) (*out)->child = clone_graph(*child);
                return result;
              }())
STANDIN_ENTRY(cuGraphDestroyNode, (CUgraphNode node), [=] {
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(engine_mutex());
  auto& nodes = node->graph->nodes;
  for (const auto& other : nodes) std::erase(other->after, node);
  delete node->child;
  std::erase_if(nodes, [&](const auto& other) { return other.get() == node; });
  return CUDA_SUCCESS;
}())
STANDIN_ENTRY(cuGraphExecUpdate_v2,
              (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* result), [=] {
                if (!exec || !graph || !result) return CUDA_ERROR_INVALID_VALUE;
                const std::lock_guard lock(engine_mutex());
                *result = {};
                if (!copy_parameters(*exec->graph, *graph)) {
                  result->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
                  return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
                }
                lay_out(*exec, current_device());
                return CUDA_SUCCESS;
              }())
