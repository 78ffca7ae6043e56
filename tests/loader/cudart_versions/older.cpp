// Makes batches of copies, and prefetches, with the arguments that they had in CUDA 11 and 12, on
// the stand-in for those. Fails by line where a result, or what came back through an argument, is
// not what it has to be.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
cudaError_t old_prefetch(const void*, size_t, int device,
                         cudaStream_t) __asm__("cudaMemPrefetchAsync");
cudaError_t old_prefetch_ptsz(const void*, size_t, int device,
                              cudaStream_t) __asm__("cudaMemPrefetchAsync_ptsz");
#if OLD_CUDA == 12
using Batch = cudaError_t(void**, const void**, size_t*, size_t count, cudaMemcpyAttributes*,
                          size_t*, size_t, size_t* failed, cudaStream_t);
Batch old_copies __asm__("cudaMemcpyBatchAsync");
Batch old_copies_ptsz __asm__("cudaMemcpyBatchAsync_ptsz");
#endif
}

namespace {

void check(bool right, int line) {
  if (right) return;
  std::printf("line %d\n", line);
  std::exit(1);
}
#define CHECK(condition) check(condition, __LINE__)
#define OK(call) check((call) == cudaSuccess, __LINE__)
#define REFUSED(call) check((call) != cudaSuccess, __LINE__)

cudaStream_t stream;
void* managed;

void prefetches() {
  OK(old_prefetch(managed, 1000, 0, stream));
  OK(old_prefetch(managed, 700, 0, nullptr));
  OK(old_prefetch_ptsz(managed, 300, 0, nullptr));
  REFUSED(old_prefetch(&stream, 8, 0, stream));
}

#if OLD_CUDA == 12
void newer() {
  char sent[100];
  char back[100] = {};
  std::memset(sent, 'x', sizeof sent);
  void* device = nullptr;
  OK(cudaMalloc(&device, 1000));
  void* to[] = {device, static_cast<char*>(device) + 100};
  const void* from[] = {sent, static_cast<char*>(device) + 500};
  size_t sizes[] = {100, 200};
  cudaMemcpyAttributes attributes = {cudaMemcpySrcAccessOrderStream, {}, {}, 0};
  size_t first = 0;
  size_t failed = 7;
  OK(old_copies(to, from, sizes, 2, &attributes, &first, 1, &failed, stream));
  OK(old_copies_ptsz(to, from, sizes, 1, &attributes, &first, 1, &failed, nullptr));
  CHECK(failed == 7);
  REFUSED(old_copies(to, from, sizes, 2, &attributes, &first, 1, &failed, nullptr));
  CHECK(failed == SIZE_MAX);

  OK(cudaMemcpyAsync(back, device, sizeof back, cudaMemcpyDeviceToHost, stream));
  OK(cudaDeviceSynchronize());
  CHECK(std::memcmp(back, sent, sizeof sent) == 0);
}
#else
void newer() {}
#endif

}  // namespace

int main() {
  CHECK(dlopen("libcuda.so.1", RTLD_NOW) != nullptr);  // as NVIDIA's runtime does
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal));
  prefetches();
  newer();
}
