// What the driver tells about graphs.
#include "engine/graph.h"

#include "driver/entry.h"

using namespace standin;

extern "C" {

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  const std::lock_guard lock(engine_mutex());
  for (const auto& node : clone->nodes) {
    if (node->original != original) continue;
    *out = node.get();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child) {
  if (!node->child) return CUDA_ERROR_INVALID_VALUE;
  *child = node->child;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type = static_cast<CUgraphNodeType>(node->op.type);
  return CUDA_SUCCESS;
}

}  // extern "C"
