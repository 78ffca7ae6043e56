// Makes copies of every kind that the runtime passes on to the driver; one of them is refused.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
decltype(cudaMemcpy) cudaMemcpy_ptds;
decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
}

namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "runtime_copies: error %d\n", static_cast<int>(error));
  std::exit(1);
}

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
  check(cudaSetDevice(1));
  void *a = nullptr, *b = nullptr, *pinned = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaMalloc(&a, kBytes));
  check(cudaMalloc(&b, kBytes));
  check(cudaHostAlloc(&pinned, kBytes, cudaHostAllocDefault));
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<char> own(kBytes);
  void* host = own.data();

  for (size_t n = 1; n <= 4; ++n) {
    check(cudaMemcpy(a, host, 100 * n, cudaMemcpyHostToDevice));
    check(cudaMemcpy(host, a, 10 * n, cudaMemcpyDeviceToHost));
    check(cudaMemcpy(b, a, 1000 * n, cudaMemcpyDeviceToDevice));
    check(cudaMemcpyAsync(b, pinned, 7 * n, cudaMemcpyHostToDevice, stream));
    check(cudaMemcpyAsync(pinned, b, 5 * n, cudaMemcpyDeviceToHost, stream));
    check(cudaMemcpyAsync(a, b, 3 * n, cudaMemcpyDeviceToDevice, stream));
  }
  // Only the pointers tell these directions.
  check(cudaMemcpy(a, pinned, 11, cudaMemcpyDefault));
  check(cudaMemcpyAsync(host, b, 13, cudaMemcpyDefault, stream));
  check(cudaMemcpy(pinned, host, 17, cudaMemcpyHostToHost));
  check(cudaMemcpyPeer(a, 1, b, 1, 19));
  check(cudaMemcpyPeerAsync(a, 1, b, 1, 23, stream));
  check(cudaMemcpy2D(a, 64, host, 32, 16, 8, cudaMemcpyHostToDevice));
  check(cudaMemcpy2DAsync(pinned, 32, a, 64, 16, 4, cudaMemcpyDeviceToHost, stream));
  check(cudaMemcpy2D(a, 64, pinned, 64, 8, 8, cudaMemcpyDefault));
  const cudaMemcpy3DParms to = box(a, host, 8, cudaMemcpyHostToDevice);
  const cudaMemcpy3DParms from = box(pinned, b, 4, cudaMemcpyDeviceToHost);
  check(cudaMemcpy3D(&to));
  check(cudaMemcpy3DAsync(&from, stream));
  check(cudaMemcpy_ptds(a, host, 29, cudaMemcpyHostToDevice));
  check(cudaMemcpyAsync_ptsz(b, pinned, 31, cudaMemcpyDefault, nullptr));
  // A pitch that is too small is refused.
  if (cudaMemcpy2D(a, 4, host, 4, 16, 8, cudaMemcpyHostToDevice) == cudaSuccess) return 1;
  check(cudaStreamSynchronize(stream));
}
