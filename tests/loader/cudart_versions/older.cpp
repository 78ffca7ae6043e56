// Makes batches of copies with the arguments that they had in CUDA 12, on the stand-in for it.
// Fails by line where a result, or what came back through an argument, is not what it has to be.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "../../clients/check.h"

extern "C" {
using Batch = cudaError_t(void**, const void**, size_t*, size_t count, cudaMemcpyAttributes*,
                          size_t*, size_t, size_t* failed, cudaStream_t);
Batch old_copies __asm__("cudaMemcpyBatchAsync");
Batch old_copies_ptsz __asm__("cudaMemcpyBatchAsync_ptsz");
}

namespace {

cudaStream_t stream;

}  // namespace

int main() {
  MUST(dlopen("libcuda.so.1", RTLD_NOW) != nullptr);  // as NVIDIA's runtime does
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  char sent[100];
  char back[100] = {};
  std::memset(sent, 'x', sizeof sent);
  void* device = nullptr;
  OK(cudaMalloc(&device, 1000));
  void* to[] = {device, static_cast<char*>(device) + 100};
  const void* from[] = {sent, sent};
  size_t sizes[] = {100, 50};
  cudaMemcpyAttributes attributes = {cudaMemcpySrcAccessOrderStream, {}, {}, 0};
  size_t first = 0;
  size_t failed = 7;
  OK(old_copies(to, from, sizes, 2, &attributes, &first, 1, &failed, stream));
  OK(old_copies_ptsz(to, from, sizes, 1, &attributes, &first, 1, &failed, nullptr));
  MUST(failed == 7);
  REFUSED(old_copies(to, from, sizes, 2, &attributes, &first, 1, &failed, nullptr));
  MUST(failed == SIZE_MAX);

  OK(cudaMemcpyAsync(back, device, sizeof back, cudaMemcpyDeviceToHost, stream));
  OK(cudaDeviceSynchronize());
  MUST(std::memcmp(back, sent, sizeof sent) == 0);
}
