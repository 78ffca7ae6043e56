#include "interpose/real/driver_graphs.h"

#include <iterator>

#include "interpose/real/copy_args.h"
#include "interpose/real/resolve.h"

namespace tprof::graph_driver {
namespace {

using resolve::DriverFunction;

// CUstreamCaptureStatus.
constexpr int kCaptureActive = 1;
constexpr int kCaptureInvalid = 2;

// Indexed by CUgraphNodeType. Newer kinds than these may move data.
constexpr NodeKind kKinds[] = {
    NodeKind::kernel, NodeKind::copy,  NodeKind::other, NodeKind::other,      NodeKind::child,
    NodeKind::other,  NodeKind::other, NodeKind::other, NodeKind::other,      NodeKind::other,
    NodeKind::other,  NodeKind::other, NodeKind::other, NodeKind::conditional};

// These exist since CUDA 11.3, and keep their arguments: newer versions get a suffix.
constinit DriverFunction<int(cudaStream_t, int*, std::uint64_t*, cudaGraph_t*,
                             const cudaGraphNode_t**, std::size_t*)>
    g_capture_info("cuStreamGetCaptureInfo_v2");
constinit DriverFunction<int(const void*, int*)> g_node_type("cuGraphNodeGetType");
constinit DriverFunction<int(const void*, const void**, std::size_t*)> g_nodes("cuGraphGetNodes");
constinit DriverFunction<int(const void*, CUDA_MEMCPY3D*)> g_copy("cuGraphMemcpyNodeGetParams");
// These exist since CUDA 12.0, and those for names since 12.3.
constinit DriverFunction<int(const void*, CUDA_KERNEL_NODE_PARAMS_v2*)> g_kernel(
    "cuGraphKernelNodeGetParams_v2");
constinit DriverFunction<int(const char**, CUfunction)> g_function_name("cuFuncGetName");
constinit DriverFunction<int(const char**, CUkernel)> g_kernel_name("cuKernelGetName");

}  // namespace

cudaGraph_t captured_into(cudaStream_t stream) {
  int status = 0;
  cudaGraph_t graph = nullptr;
  std::uint64_t id = 0;
  // The legacy stream returns an error while another stream captures; its call is then not
  // captured.
  if (g_capture_info(stream, &status, &id, &graph, nullptr, nullptr) != 0) return nullptr;
  if (status == kCaptureInvalid) return kNoGraph;
  return status == kCaptureActive ? graph : nullptr;
}

NodeKind kind_of(const void* node) {
  int type = -1;
  if (node == nullptr || g_node_type(node, &type) != 0) return NodeKind::unknown;
  return type >= 0 && type < static_cast<int>(std::size(kKinds)) ? kKinds[type] : NodeKind::unknown;
}

std::ptrdiff_t nodes_of(const void* graph, const void** nodes, std::size_t room) {
  std::size_t count = room;
  if (graph == nullptr || g_nodes(graph, room == 0 ? nullptr : nodes, &count) != 0) return -1;
  return static_cast<std::ptrdiff_t>(count);
}

bool copies_within_device(const void* node) {
  CUDA_MEMCPY3D region{};
  if (g_copy(node, &region) != 0) return false;
  return bucket_of(region_copy(&region, nullptr, false)) == Bucket::D2D;
}

bool may_be_nccl(const void* node) {
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  if (g_kernel(node, &kernel) != 0) return true;
  const char* name = nullptr;
  const int answer = kernel.func != nullptr ? g_function_name(&name, kernel.func)
                                            : g_kernel_name(&name, kernel.kern);
  return answer != 0 || name == nullptr || is_of_nccl(name);
}

}  // namespace tprof::graph_driver
