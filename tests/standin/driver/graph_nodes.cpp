// Graphs that are made by hand, cloned and updated through the driver.
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

CUresult place(const char* function, const CUDA_MEMCPY3D* box,
               const std::function<CUresult(Op)>& put) {
  if (!box) return CUDA_ERROR_INVALID_VALUE;
  return as_driver(place_copy(function, block(*box), kind_of(*box),
                              [&](Op op) { return static_cast<cudaError_t>(put(std::move(op))); }));
}

}  // namespace

STANDIN_ENTRY(cuGraphAddMemcpyNode,
              (CUgraphNode * out, CUgraph graph, const CUgraphNode* after, size_t count,
               const CUDA_MEMCPY3D* box, CUcontext),
              place("cuGraphAddMemcpyNode", box,
                    [=](Op op) { return add(out, graph, after, count, std::move(op)); }))

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  *graph = new CUgraph_st;
  return CUDA_SUCCESS;
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
