// Graphs made or changed by the driver's functions, or through pointers taken past all preloads.
#include <cuda.h>

#include "situations.h"

namespace {

// Returns a function of the driver that does not go through a preload.
template <typename F>
F driver(F, const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto* found = reinterpret_cast<F>(dlsym(library, name));
  check(found != nullptr, name, __LINE__);
  return found;
}
// Looks the function up by the name that it has in the library.
#define DRIVER(function) DRIVER_NAMED(function)
#define DRIVER_NAMED(function) driver(&function, #function)
#define DRIVER_OK(call) check((call) == CUDA_SUCCESS, #call, __LINE__)

CUDA_MEMCPY3D box(size_t bytes, bool to_device, size_t rows = 1) {
  CUDA_MEMCPY3D b{};
  b.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  b.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  b.srcHost = b.dstHost = host;
  b.srcDevice = b.dstDevice = reinterpret_cast<CUdeviceptr>(device);
  b.srcPitch = b.dstPitch = 64;
  b.WidthInBytes = bytes;
  b.Height = rows;
  b.Depth = 1;
  return b;
}
cudaGraphNode_t add(cudaGraph_t graph, const CUDA_MEMCPY3D& b) {
  CUgraphNode node = nullptr;
  DRIVER_OK(DRIVER(cuGraphAddMemcpyNode)(&node, graph, nullptr, 0, &b, nullptr));
  return node;
}
cudaGraph_t made() {
  CUgraph graph = nullptr;
  DRIVER_OK(DRIVER(cuGraphCreate)(&graph, 0));
  return graph;
}
cudaGraphNode_t kernel_in(cudaGraph_t graph) {
  return node_in(graph, cudaGraphNodeTypeKernel);
}

// Creates the graph through a pointer taken past all preloads; the rest is seen.
void made_past_the_wrappers() {
  void* runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
  auto* create = reinterpret_cast<decltype(&cudaGraphCreate)>(dlsym(runtime, "cudaGraphCreate"));
  cudaGraph_t graph = nullptr;
  OK(create(&graph, 0));
  add_upload(graph, 100);
  run(graph, 3);
  run(captured(), 2);
}

void built_by_the_driver() {
  cudaGraph_t graph = made();
  cudaGraphNode_t first = add(graph, box(100, true));
  add(graph, box(20, false, 4));
  CUDA_MEMCPY3D unified = box(300, true);
  unified.srcMemoryType = unified.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  unified.srcDevice = reinterpret_cast<CUdeviceptr>(host);
  add(graph, unified);
  CUgraphNode kernel = nullptr;
  const CUDA_KERNEL_NODE_PARAMS params{};
  DRIVER_OK(DRIVER(cuGraphAddKernelNode)(&kernel, graph, nullptr, 0, &params));
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 2);
  const CUDA_MEMCPY3D longer = box(500, true);
  DRIVER_OK(DRIVER(cuGraphMemcpyNodeSetParams)(first, &longer));
  run(graph, 3);
  OK(cudaGraphNodeSetEnabled(executable, first, 0));
  launch(executable, 1);
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphNodeSetEnabled(executable, first, 1));
  OK(cudaGraphExecUpdate(executable, graph, &result));
  launch(executable, 1);
  OK(cudaGraphDestroyNode(first));
  run(graph, 1);
}

void children_by_the_driver() {
  cudaGraph_t child = made(), parent = empty();
  add(child, box(100, true));
  CUgraphNode node = nullptr;
  DRIVER_OK(DRIVER(cuGraphAddChildGraphNode)(&node, parent, nullptr, 0, child));
  DRIVER_OK(DRIVER(cuGraphAddChildGraphNode)(&node, parent, nullptr, 0, child));
  add_upload(parent, 30);
  run(parent, 2);
  cudaGraph_t inside = nullptr;
  OK(cudaGraphChildGraphNodeGetGraph(node, &inside));
  add(inside, box(7, true));
  run(parent, 3);
}

// The driver adds a copy to a captured graph, changes one in it and takes nodes out of it.
void captured_and_changed_by_the_driver() {
  cudaGraph_t graph = captured();
  upload(50);  // outside the capture
  add(graph, box(200, true));
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 2);
  const CUDA_MEMCPY3D other = box(700, true);
  DRIVER_OK(DRIVER(cuGraphMemcpyNodeSetParams)(copy_in(graph), &other));
  run(graph, 3);
  DRIVER_OK(DRIVER(cuGraphDestroyNode)(copy_in(graph)));
  run(graph, 4);
  DRIVER_OK(DRIVER(cuGraphDestroyNode)(kernel_in(graph)));
  run(graph, 5);
  launch(executable, 1);
}

// A copy within the device, as NCCL makes them between its buffers, is no copy of the program's.
void copy_within_the_device() {
  cudaGraph_t graph = captured();
  CUDA_MEMCPY3D own = box(64, true);
  own.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  add(graph, own);
  run(graph, 3);
}

// The clone's copies are known, but its all-gather is not.
void cloned_by_the_driver() {
  CUgraph clone = nullptr;
  DRIVER_OK(DRIVER(cuGraphClone)(&clone, captured()));
  run(clone, 3);
}

// The capture's begin, its copy and its end all go past the wrappers.
void capture_begun_past_us() {
  DRIVER_OK(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  DRIVER_OK(DRIVER(cuMemcpyHtoDAsync)(reinterpret_cast<CUdeviceptr>(device), host, 100, stream));
  CUgraph graph = nullptr;
  DRIVER_OK(DRIVER(cuStreamEndCapture)(stream, &graph));
  run(graph, 3);
}

void kernel_of_nccl_disabled() {
  cudaGraph_t graph = captured();
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 1);
  OK(cudaGraphNodeSetEnabled(executable, kernel_in(graph), 0));
  launch(executable, 2);
  OK(cudaGraphNodeSetEnabled(executable, kernel_in(graph), 1));
  launch(executable, 3);
  OK(cudaGraphDestroyNode(kernel_in(graph)));
  run(graph, 4);
}

// One kernel runs the calls of a group, and nobody tells which calls these are.
void kernel_of_a_group_disabled() {
  begin();
  upload(100);
  NCCL_OK(ncclGroupStart());
  gather(16);
  gather(32);
  NCCL_OK(ncclGroupEnd());
  cudaGraph_t graph = end();
  cudaGraphExec_t executable = instantiate(graph);
  OK(cudaGraphNodeSetEnabled(executable, kernel_in(graph), 0));
  launch(executable, 2);
}

void kernel_of_a_group_removed() {
  begin();
  NCCL_OK(ncclGroupStart());
  gather(16);
  gather(32);
  NCCL_OK(ncclGroupEnd());
  cudaGraph_t graph = end();
  OK(cudaGraphDestroyNode(kernel_in(graph)));
  run(graph, 2);
}

}  // namespace

SITUATIONS(past_us_situations,
           SITUATION(made_past_the_wrappers) SITUATION(built_by_the_driver)
               SITUATION(children_by_the_driver) SITUATION(captured_and_changed_by_the_driver)
                   SITUATION(copy_within_the_device) SITUATION(cloned_by_the_driver)
                       SITUATION(capture_begun_past_us) SITUATION(kernel_of_nccl_disabled)
                           SITUATION(kernel_of_a_group_disabled)
                               SITUATION(kernel_of_a_group_removed))
