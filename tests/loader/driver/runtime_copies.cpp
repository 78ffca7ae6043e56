// Makes copies of every kind that the runtime passes on to the driver; one of them is refused.
#include <cuda_runtime_api.h>

#include <vector>

#include "../../clients/check.h"

extern "C" {
decltype(cudaMemcpy) cudaMemcpy_ptds;
decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
}

namespace {

cudaMemcpy3DParms box(void* dst, void* src, size_t n, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p{};
  p.dstPtr = {dst, 2 * n, n, n};
  p.srcPtr = {src, n, n, n};
  p.extent = {n, n, 2};
  p.kind = kind;
  return p;
}

}  // namespace

int main() {
  constexpr size_t kBytes = 1 << 16;
  OK(cudaSetDevice(1));
  void *a = nullptr, *b = nullptr, *pinned = nullptr;
  cudaStream_t stream = nullptr;
  OK(cudaMalloc(&a, kBytes));
  OK(cudaMalloc(&b, kBytes));
  OK(cudaHostAlloc(&pinned, kBytes, cudaHostAllocDefault));
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<char> own(kBytes);
  void* host = own.data();

  for (size_t n = 1; n <= 4; ++n) {
    OK(cudaMemcpy(a, host, 100 * n, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(host, a, 10 * n, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(b, a, 1000 * n, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpyAsync(b, pinned, 7 * n, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(pinned, b, 5 * n, cudaMemcpyDeviceToHost, stream));
    OK(cudaMemcpyAsync(a, b, 3 * n, cudaMemcpyDeviceToDevice, stream));
  }
  // Only the pointers tell these directions.
  OK(cudaMemcpy(a, pinned, 11, cudaMemcpyDefault));
  OK(cudaMemcpyAsync(host, b, 13, cudaMemcpyDefault, stream));
  OK(cudaMemcpy(pinned, host, 17, cudaMemcpyHostToHost));
  OK(cudaMemcpyPeer(a, 1, b, 1, 19));
  OK(cudaMemcpyPeerAsync(a, 1, b, 1, 23, stream));
  OK(cudaMemcpy2D(a, 64, host, 32, 16, 8, cudaMemcpyHostToDevice));
  OK(cudaMemcpy2DAsync(pinned, 32, a, 64, 16, 4, cudaMemcpyDeviceToHost, stream));
  OK(cudaMemcpy2D(a, 64, pinned, 64, 8, 8, cudaMemcpyDefault));
  const cudaMemcpy3DParms to = box(a, host, 8, cudaMemcpyHostToDevice);
  const cudaMemcpy3DParms from = box(pinned, b, 4, cudaMemcpyDeviceToHost);
  OK(cudaMemcpy3D(&to));
  OK(cudaMemcpy3DAsync(&from, stream));
  OK(cudaMemcpy_ptds(a, host, 29, cudaMemcpyHostToDevice));
  OK(cudaMemcpyAsync_ptsz(b, pinned, 31, cudaMemcpyDefault, nullptr));
  // A pitch that is too small is refused.
  if (cudaMemcpy2D(a, 4, host, 4, 16, 8, cudaMemcpyHostToDevice) == cudaSuccess) return 1;
  OK(cudaStreamSynchronize(stream));
}
