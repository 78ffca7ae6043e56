// driver_graphs SITUATION: CUDA graphs that are captured, built and updated through the driver.
// Fails by line.
#include <cuda.h>

#include <string_view>

#include "../../clients/check.h"

// cuda.h declares the twins by a macro only.
extern "C" {
decltype(cuStreamBeginCapture) cuStreamBeginCapture_v2_ptsz;
decltype(cuStreamEndCapture) cuStreamEndCapture_ptsz;
decltype(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
decltype(cuGraphLaunch) cuGraphLaunch_ptsz;
#if CUDA_VERSION < 13030
[[gnu::weak]] CUresult cuStreamBeginRecaptureToGraph(CUstream, CUstreamCaptureMode, CUgraph, void*,
                                                     void*);
#endif
}

namespace {

constexpr size_t kSize = 4096;
CUdeviceptr device;
void* host;
CUstream stream;

void set_up() {
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuMemAlloc(&device, kSize));
  OK(cuMemHostAlloc(&host, kSize, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

// Stream 0 of the twins is the calling thread's own.
void own_default_stream() {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(cuStreamBeginCapture_v2_ptsz(nullptr, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuMemcpyHtoDAsync_v2_ptsz(device, host, 100, nullptr));
  OK(cuStreamEndCapture_ptsz(nullptr, &graph));
  OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) OK(cuGraphLaunch_ptsz(executable, nullptr));
}

CUDA_MEMCPY3D box(size_t bytes, bool to_device) {
  CUDA_MEMCPY3D b{};
  b.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  b.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  b.srcHost = b.dstHost = host;
  b.srcDevice = b.dstDevice = device;
  b.WidthInBytes = bytes;
  b.Height = b.Depth = 1;
  return b;
}
void add(CUgraph graph, size_t bytes, bool to_device) {
  CUgraphNode node = nullptr;
  const CUDA_MEMCPY3D b = box(bytes, to_device);
  OK(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &b, nullptr));
}
CUgraph made() {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  return graph;
}
CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec executable = nullptr;
  OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
  return executable;
}
void launch(CUgraphExec executable, int times) {
  for (int i = 0; i < times; ++i) OK(cuGraphLaunch(executable, stream));
  OK(cuStreamSynchronize(stream));
}

void built_cloned_updated() {
  CUgraph graph = made(), longer = made(), clone = nullptr;
  add(graph, 100, true);
  add(graph, 40, false);
  add(longer, 200, true);
  add(longer, 80, false);
  OK(cuGraphClone(&clone, longer));
  CUgraphExec executable = instantiate(graph);
  launch(executable, 2);
  CUgraphExecUpdateResultInfo result;
  OK(cuGraphExecUpdate(executable, longer, &result));
  launch(executable, 3);
  launch(instantiate(clone), 4);
}

// The second capture replaces what the first one captured.
void captured_again() {
  CUgraph graph = nullptr;
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuMemcpyHtoDAsync(device, host, 100, stream));
  OK(cuStreamEndCapture(stream, &graph));
  launch(instantiate(graph), 2);
  OK(cuStreamBeginRecaptureToGraph(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, graph, nullptr,
                                   nullptr));
  OK(cuMemcpyHtoDAsync(device, host, 300, stream));
  OK(cuStreamEndCapture(stream, &graph));
  launch(instantiate(graph), 3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string_view situation = argv[1];
  set_up();
  if (situation == "own_default_stream") own_default_stream();
  if (situation == "built_cloned_updated") built_cloned_updated();
  if (situation == "captured_again") captured_again();
  OK(cuCtxSynchronize());
}
