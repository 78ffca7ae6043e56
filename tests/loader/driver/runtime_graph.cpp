// Captures copies into a graph and launches it.
#include <cuda_runtime_api.h>

#include "../../clients/check.h"

int main() {
  void *a = nullptr, *pinned = nullptr;
  cudaStream_t stream = nullptr;
  OK(cudaSetDevice(0));
  OK(cudaMalloc(&a, 4096));
  OK(cudaHostAlloc(&pinned, 4096, cudaHostAllocDefault));
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaMemcpyAsync(a, pinned, 100, cudaMemcpyHostToDevice, stream));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 3; ++i) {
    OK(cudaMemcpyAsync(a, pinned, 1000, cudaMemcpyHostToDevice, stream));
  }
  OK(cudaMemcpyAsync(pinned, a, 10, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  for (int i = 0; i < 5; ++i) OK(cudaGraphLaunch(exec, stream));
  OK(cudaMemcpyAsync(pinned, a, 7, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaGraphExecDestroy(exec));
}
