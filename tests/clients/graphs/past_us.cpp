// Graphs made by the driver's functions, or through pointers taken past all preloads.
#include <cuda.h>

#include "situations.h"

namespace {

// Returns a function of the driver that does not go through a preload.
template <typename F>
F driver(F, const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto* found = reinterpret_cast<F>(dlsym(library, name));
  MUST(found != nullptr);
  return found;
}

// Looks the function up by the name that it has in the library.
#define DRIVER(function) DRIVER_NAMED(function)
#define DRIVER_NAMED(function) driver(&function, #function)

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
void add(cudaGraph_t graph, const CUDA_MEMCPY3D& b) {
  CUgraphNode node = nullptr;
  OK(DRIVER(cuGraphAddMemcpyNode)(&node, graph, nullptr, 0, &b, nullptr));
}
cudaGraph_t made() {
  CUgraph graph = nullptr;
  OK(DRIVER(cuGraphCreate)(&graph, 0));
  return graph;
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
  add(graph, box(100, true));
  add(graph, box(20, false, 4));
  CUDA_MEMCPY3D unified = box(300, true);
  unified.srcMemoryType = unified.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  unified.srcDevice = reinterpret_cast<CUdeviceptr>(host);
  add(graph, unified);
  CUgraphNode kernel = nullptr;
  const CUDA_KERNEL_NODE_PARAMS params{};
  OK(DRIVER(cuGraphAddKernelNode)(&kernel, graph, nullptr, 0, &params));
  run(graph, 2);
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
  OK(DRIVER(cuGraphClone)(&clone, captured()));
  run(clone, 3);
}

// The capture's begin, its copy and its end all go past the wrappers.
void capture_begun_past_us() {
  OK(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(DRIVER(cuMemcpyHtoDAsync)(reinterpret_cast<CUdeviceptr>(device), host, 100, stream));
  CUgraph graph = nullptr;
  OK(DRIVER(cuStreamEndCapture)(stream, &graph));
  run(graph, 3);
}

}  // namespace

SITUATIONS(past_us_situations, SITUATION(made_past_the_wrappers) SITUATION(built_by_the_driver)
                                   SITUATION(copy_within_the_device) SITUATION(cloned_by_the_driver)
                                       SITUATION(capture_begun_past_us))
