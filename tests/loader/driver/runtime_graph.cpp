// Captures copies into a graph and launches it.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "runtime_graph: error %d\n", static_cast<int>(error));
  std::exit(1);
}

}  // namespace

int main() {
  void *a = nullptr, *pinned = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaSetDevice(0));
  check(cudaMalloc(&a, 4096));
  check(cudaHostAlloc(&pinned, 4096, cudaHostAllocDefault));
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaMemcpyAsync(a, pinned, 100, cudaMemcpyHostToDevice, stream));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 3; ++i) {
    check(cudaMemcpyAsync(a, pinned, 1000, cudaMemcpyHostToDevice, stream));
  }
  check(cudaMemcpyAsync(pinned, a, 10, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  check(cudaGraphDestroy(graph));
  for (int i = 0; i < 5; ++i) check(cudaGraphLaunch(exec, stream));
  check(cudaMemcpyAsync(pinned, a, 7, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  check(cudaGraphExecDestroy(exec));
}
