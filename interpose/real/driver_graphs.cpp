#include "interpose/real/driver_graphs.h"

#include <iterator>

#include "interpose/real/copy_args.h"
#include "interpose/real/resolve.h"

namespace tprof::graph_driver {
namespace {

using resolve::DriverFunction;

// CUresult, CUstreamCaptureStatus and CUgraphNodeType are ints.
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
  auto* ask = g_capture_info.get();
  int status = 0;
  cudaGraph_t graph = nullptr;
  std::uint64_t id = 0;
  // The legacy stream returns an error while another stream captures; its call is then not
  // captured.
  if (ask == nullptr || ask(stream, &status, &id, &graph, nullptr, nullptr) != 0) return nullptr;
  if (status == kCaptureInvalid) return kNoGraph;
  return status == kCaptureActive ? graph : nullptr;
}

NodeKind kind_of(const void* node) {
  auto* ask = g_node_type.get();
  int type = -1;
  if (ask == nullptr || node == nullptr || ask(node, &type) != 0) return NodeKind::unknown;
  return type >= 0 && type < static_cast<int>(std::size(kKinds)) ? kKinds[type] : NodeKind::unknown;
}

std::ptrdiff_t nodes_of(const void* graph, const void** nodes, std::size_t room) {
  auto* ask = g_nodes.get();
  std::size_t count = room;
  if (ask == nullptr || graph == nullptr) return -1;
  if (ask(graph, room == 0 ? nullptr : nodes, &count) != 0) return -1;
  return static_cast<std::ptrdiff_t>(count);
}

bool copies_within_device(const void* node) {
  auto* ask = g_copy.get();
  CUDA_MEMCPY3D region{};
  if (ask == nullptr || ask(node, &region) != 0) return false;
  return bucket_of(region_copy(&region, nullptr, false)) == Bucket::D2D;
}

bool may_be_nccl(const void* node) {
  auto* ask = g_kernel.get();
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  if (ask == nullptr || ask(node, &kernel) != 0) return true;
  const char* name = nullptr;
  if (kernel.func != nullptr) {
    auto* of_function = g_function_name.get();
    if (of_function == nullptr || of_function(&name, kernel.func) != 0) return true;
  } else {
    auto* of_kernel = g_kernel_name.get();
    if (of_kernel == nullptr || of_kernel(&name, kernel.kern) != 0) return true;
  }
  return name == nullptr || is_of_nccl(name);
}

}  // namespace tprof::graph_driver
