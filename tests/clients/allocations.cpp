// Allocates and frees in every way that the runtime and the driver offer. No two calls overlap
// unless a comment says so, and some memory is left at the end. A failure prints its line.
//   allocations          does all of it
//   allocations killed   then raises SIGKILL
//   allocations forked   then forks a child that allocates too
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"

#undef cuGetProcAddress
extern "C" {
cudaError_t cudaMallocAsync_ptsz(void**, size_t, cudaStream_t);  // overloaded in C++
cudaError_t cudaMallocFromPoolAsync_ptsz(void**, size_t, cudaMemPool_t, cudaStream_t);
decltype(cudaFreeAsync) cudaFreeAsync_ptsz;
}

namespace {

constexpr size_t kBlock = 2 << 20;
cudaStream_t stream;
void* driver;

void* allocate(size_t size) {
  void* memory = nullptr;
  OK(cudaMalloc(&memory, size));
  return memory;
}

// exported() takes a driver function by its exported name, given() asks for it as a runtime does.
template <typename F>
F exported(const char* name) {
  return reinterpret_cast<F>(dlsym(driver, name));
}
#define EXPORTED(name) exported<decltype(&name)>(#name)
template <typename F>
F given(const char* name) {
  static const auto ask = EXPORTED(cuGetProcAddress_v2);
  void* found = nullptr;
  OK(ask(name, &found, 13000, 0, nullptr));
  return reinterpret_cast<F>(found);
}
#define GIVEN(exported_name, name) given<decltype(&exported_name)>(#name)

void of_the_runtime() {
  void* a = allocate(1000);
  void* b = allocate(2000);
  OK(cudaFree(a));
  OK(cudaFree(nullptr));
  REFUSED(cudaMalloc(&a, size_t{1} << 50));
  REFUSED(cudaFree(static_cast<char*>(b) + 8));
  size_t pitch = 0;
  OK(cudaMallocPitch(&a, &pitch, 100, 7));
  cudaPitchedPtr pitched{};
  OK(cudaMalloc3D(&pitched, {100, 5, 3}));
  OK(cudaFree(pitched.ptr));

  void* host = nullptr;
  void* managed = nullptr;
  std::vector<char> own(5000);
  OK(cudaHostAlloc(&host, 300, cudaHostAllocDefault));
  OK(cudaMallocHost(&a, 400));
  OK(cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault));
  REFUSED(cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault));
  OK(cudaMallocManaged(&managed, 600, cudaMemAttachGlobal));
  OK(cudaHostUnregister(own.data()));
  REFUSED(cudaHostUnregister(own.data()));
  OK(cudaFreeHost(host));
  OK(cudaFree(managed));
  OK(cudaMallocManaged(&managed, 70, cudaMemAttachGlobal));
}

void on_streams() {
  void *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
  cudaMemPool_t pool = nullptr;
  OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  OK(cudaMallocAsync(&a, 10'000, stream));
  OK(cudaMallocAsync_ptsz(&b, 20'000, nullptr));
  OK(cudaMallocFromPoolAsync(&c, 40'000, pool, stream));
  OK(cudaMallocFromPoolAsync_ptsz(&d, 80'000, pool, nullptr));
  OK(cudaFreeAsync(a, stream));
  OK(cudaFreeAsync_ptsz(b, nullptr));
  OK(cudaStreamSynchronize(stream));
  OK(cudaFree(c));
  // Memory that a graph allocates belongs to nobody while the graph does not run.
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  OK(cudaMallocAsync(&a, 1 << 20, stream));
  OK(cudaFreeAsync(a, stream));
  OK(cudaStreamEndCapture(stream, &graph));
}

// Another thread frees what this one allocated; then several do both at once, with small blocks.
void on_threads() {
  void* mine = allocate(3000);
  std::thread([mine] { OK(cudaFree(mine)); }).join();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 300; ++i) OK(cudaFree(allocate(16)));
      allocate(8);
    });
  }
  for (std::thread& t : threads) t.join();
}

void of_the_driver() {
  CUdeviceptr a = 0, b = 0, c = 0;
  size_t pitch = 0;
  void *host = nullptr, *more = nullptr;
  std::vector<char> own(900);
  OK(EXPORTED(cuMemAlloc_v2)(&a, 11'000));
  OK(GIVEN(cuMemAlloc_v2, cuMemAlloc)(&b, 12'000));
  OK(EXPORTED(cuMemAllocPitch_v2)(&c, &pitch, 100, 9, 4));
  OK(GIVEN(cuMemFree_v2, cuMemFree)(a));
  REFUSED(EXPORTED(cuMemFree_v2)(a));
  REFUSED(EXPORTED(cuMemAlloc_v2)(&a, size_t{1} << 50));
  OK(cudaFree(reinterpret_cast<void*>(c)));  // NOLINT(performance-no-int-to-ptr)
  OK(EXPORTED(cuMemAllocManaged)(&a, 130, CU_MEM_ATTACH_GLOBAL));
  OK(EXPORTED(cuMemFree_v2)(a));
  OK(EXPORTED(cuMemHostAlloc)(&host, 1400, 0));
  OK(GIVEN(cuMemAllocHost_v2, cuMemAllocHost)(&more, 1500));
  OK(EXPORTED(cuMemHostRegister_v2)(own.data(), own.size(), 0));
  OK(EXPORTED(cuMemFreeHost)(host));
  OK(EXPORTED(cuMemHostUnregister)(own.data()));
  OK(EXPORTED(cuMemAllocAsync)(&a, 16'000, stream));
  OK(EXPORTED(cuMemAllocFromPoolAsync)(&c, 17'000, nullptr, stream));
  OK(EXPORTED(cuMemFreeAsync)(a, stream));
}

// Physical memory is mapped, unmapped and released as PyTorch does it, and as NCCL does.
void mapped_by_hand() {
  const auto create = EXPORTED(cuMemCreate);
  const auto release = EXPORTED(cuMemRelease);
  const auto map = EXPORTED(cuMemMap);
  const auto unmap = EXPORTED(cuMemUnmap);
  CUdeviceptr at = 0;
  OK(EXPORTED(cuMemAddressReserve)(&at, 8 * kBlock, 0, 0, 0));
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemGenericAllocationHandle a = 0, b = 0, again = 0, host = 0;
  OK(create(&a, 2 * kBlock, &wanted, 0));
  OK(GIVEN(cuMemCreate, cuMemCreate)(&b, kBlock, &wanted, 0));
  REFUSED(create(&host, size_t{1} << 50, &wanted, 0));
  OK(map(at, 2 * kBlock, 0, a, 0));
  OK(map(at + 3 * kBlock, kBlock, 0, b, 0));
  OK(unmap(at, 2 * kBlock));
  OK(release(a));
  REFUSED(release(a));
  OK(EXPORTED(cuMemRetainAllocationHandle)(
      &again, reinterpret_cast<void*>(at + 3 * kBlock)));  // NOLINT(performance-no-int-to-ptr)
  OK(release(again));
  OK(unmap(at + 3 * kBlock, kBlock));
  OK(release(again));
  wanted.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  OK(create(&host, kBlock, &wanted, 0));
  OK(release(host));
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 3};
  OK(create(&b, kBlock, &wanted, 0));
}

void all() {
  OK(cudaSetDevice(0));
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  of_the_runtime();
  void* large = allocate(1 << 20);  // the largest allocation on device 0
  // Allocations made before the first recorded call count too.
  char byte = 0;
  OK(cudaMemcpy(large, &byte, 1, cudaMemcpyHostToDevice));
  on_streams();
  on_threads();
  OK(cudaFree(large));
  OK(cudaSetDevice(1));
  allocate(100);
  of_the_driver();
  mapped_by_hand();
  OK(cudaSetDevice(2));
  OK(cudaFree(allocate(5000)));
  allocate(700);
  OK(cudaSetDevice(0));
  OK(cudaDeviceSynchronize());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view then = argc > 1 ? argv[1] : "";
  // Loads the driver as NVIDIA's runtime does at its first call.
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  MUST(driver != nullptr);
  all();
  if (then == "killed") raise(SIGKILL);
  if (then != "forked") return 0;
  const pid_t child = fork();
  if (child == 0) {
    allocate(4444);
    void* host = nullptr;
    OK(cudaHostAlloc(&host, 555, cudaHostAllocDefault));
    // The refused copy is counted, so the child has a file.
    REFUSED(cudaMemcpy(nullptr, host, 8, cudaMemcpyHostToDevice));
    _exit(0);
  }
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
}
