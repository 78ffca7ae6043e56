// The driver's queries about graphs.
#include "engine/graph.h"

#include "driver/entry.h"

using namespace standin;

extern "C" {

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  if (!graph || !count) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(engine_mutex());
  for (size_t i = 0; nodes && i < *count; ++i) {
    nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
  }
  if (!nodes || *count > graph->nodes.size()) *count = graph->nodes.size();
  return CUDA_SUCCESS;
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  if (!node || node->op.type != cudaGraphNodeTypeMemcpy) return CUDA_ERROR_INVALID_VALUE;
  const Region& r = node->op.copied;
  const auto side = [&](bool host) {
    if (node->op.kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
    return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  };
  const cudaMemcpyKind kind = node->op.kind;
  *out = {};
  out->srcMemoryType = side(kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost);
  out->dstMemoryType = side(kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost);
  out->srcHost = r.src;
  out->dstHost = r.dst;
  out->srcDevice = reinterpret_cast<CUdeviceptr>(r.src);
  out->dstDevice = reinterpret_cast<CUdeviceptr>(r.dst);
  out->srcPitch = r.src_pitch;
  out->dstPitch = r.dst_pitch;
  out->WidthInBytes = r.width;
  out->Height = r.height;
  out->Depth = r.depth;
  return CUDA_SUCCESS;
}
// A CUfunction is a pointer to its name.
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  if (!node || node->op.type != cudaGraphNodeTypeKernel) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->func = reinterpret_cast<CUfunction>(const_cast<char*>(node->op.kernel));
  return CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
  *name = reinterpret_cast<const char*>(function);
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type = node->child ? CU_GRAPH_NODE_TYPE_GRAPH : static_cast<CUgraphNodeType>(node->op.type);
  return CUDA_SUCCESS;
}

}  // extern "C"
