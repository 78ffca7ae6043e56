#include "graph_driver.h"

#include "interpose/resolve/driver_function.h"

namespace tprof::graph_driver {
namespace {

using resolve::DriverFunction;

// CUresult, CUstreamCaptureStatus and CUgraphNodeType are ints.
constexpr int kCaptureActive = 1;
constexpr int kCaptureInvalid = 2;
constexpr int kNodeMemcpy = 1;

// Since CUDA 11.3, with these arguments for ever: newer ones have another suffix.
constinit DriverFunction<int(cudaStream_t, int*, std::uint64_t*, cudaGraph_t*,
                             const cudaGraphNode_t**, std::size_t*)>
    g_capture_info("cuStreamGetCaptureInfo_v2");
constinit DriverFunction<int(cudaGraphNode_t*, const void*, const void*)> g_find_in_clone(
    "cuGraphNodeFindInClone");
constinit DriverFunction<int(const void*, cudaGraph_t*)> g_child_graph(
    "cuGraphChildGraphNodeGetGraph");
constinit DriverFunction<int(const void*, int*)> g_node_type("cuGraphNodeGetType");

}  // namespace

CaptureStatus capture_of(cudaStream_t stream, Capture& capture) {
  auto* ask = g_capture_info.get();
  if (ask == nullptr) return CaptureStatus::none;
  int status = 0;
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = 0;
  // An error is what the legacy stream gives while another one captures: not ours to record.
  if (ask(stream, &status, &capture.id, &capture.graph, &nodes, &count) != 0) {
    return CaptureStatus::none;
  }
  if (status == kCaptureInvalid) return CaptureStatus::invalid;
  if (status != kCaptureActive) return CaptureStatus::none;
  capture.before = count == 1 ? *nodes : nullptr;
  return CaptureStatus::active;
}

cudaGraphNode_t in_clone(const void* node, const void* clone) {
  auto* ask = g_find_in_clone.get();
  cudaGraphNode_t found = nullptr;
  if (ask == nullptr || node == nullptr || clone == nullptr) return nullptr;
  return ask(&found, node, clone) == 0 ? found : nullptr;
}

cudaGraph_t child_of(const void* node) {
  auto* ask = g_child_graph.get();
  cudaGraph_t found = nullptr;
  return ask != nullptr && node != nullptr && ask(node, &found) == 0 ? found : nullptr;
}

bool is_no_copy(const void* node) {
  auto* ask = g_node_type.get();
  int type = kNodeMemcpy;
  return ask != nullptr && node != nullptr && ask(node, &type) == 0 && type != kNodeMemcpy;
}

}  // namespace tprof::graph_driver
