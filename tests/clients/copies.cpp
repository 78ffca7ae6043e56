// Makes copies that no seed of random_calls chooses: batches that are refused or have two
// directions, and copies of host memory that no wrapper allocated. Where data did not arrive, it
// prints the failed check and ends.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <numeric>
#include <vector>

#include "check.h"
#include "per_thread_copies.h"

namespace {

using Bytes = std::vector<unsigned char>;

cudaStream_t stream;

Bytes counting(size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

void* device(size_t size) {
  void* memory = nullptr;
  OK(cudaMalloc(&memory, size));
  return memory;
}

cudaMemcpy3DParms box(void* dst, const Bytes& src, cudaExtent extent) {
  cudaMemcpy3DParms p{};
  p.srcPtr = {const_cast<unsigned char*>(src.data()), extent.width, extent.width, extent.height};
  p.dstPtr = {dst, extent.width, extent.width, extent.height};
  p.extent = extent;
  p.kind = cudaMemcpyHostToDevice;
  return p;
}

void boxes() {
  const Bytes sent = counting(7 * 5 * 3);
  void* there = device(sent.size());
  const cudaExtent all = {7, 5, 3};
  cudaMemcpy3DParms p = box(there, sent, all);
  OK(cudaMemcpy3D(&p));
  OK(cudaMemcpy3D_ptds(&p));
  OK(cudaMemcpy3DAsync(&p, stream));
  p.extent = {6, 4, 2};  // a part of it
  OK(cudaMemcpy3DAsync_ptsz(&p, stream));
  p.kind = cudaMemcpyDefault;
  OK(cudaMemcpy3D(&p));
  OK(cudaStreamSynchronize(stream));
  Bytes back(sent.size());
  OK(cudaMemcpy(back.data(), there, back.size(), cudaMemcpyDeviceToHost));
  MUST(back == sent);
  p.dstPtr.ptr = nullptr;
  p.kind = cudaMemcpyHostToDevice;
  REFUSED(cudaMemcpy3D(&p));
  REFUSED(cudaMemcpy3DAsync(&p, stream));
}

// Copies from and to each kind of host memory: pinned, managed, and the program's own, before,
// while and after it is registered. One block is pinned by the driver, where no wrapper sees it.
void host_sides(void* driver) {
  void* there = device(64);
  const auto copies = [there](void* host) {
    OK(cudaMemcpyAsync(there, host, 64, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(host, there, 48, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(there, static_cast<char*>(host) + 32, 32, cudaMemcpyDefault));
  };
  void* pinned = nullptr;
  void* managed = nullptr;
  void* past = nullptr;
  OK(cudaMallocHost(&pinned, 64));
  OK(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal));
  const auto allocate =
      reinterpret_cast<int (*)(void**, size_t, unsigned)>(dlsym(driver, "cuMemHostAlloc"));
  MUST(allocate != nullptr && allocate(&past, 64, 0) == 0);
  Bytes own(64);
  for (void* host : {pinned, past, static_cast<void*>(own.data())}) copies(host);
  OK(cudaMemcpy(there, managed, 64, cudaMemcpyHostToDevice));
  OK(cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault));
  copies(own.data());
  OK(cudaHostUnregister(own.data()));
  copies(own.data());
  OK(cudaFreeHost(pinned));
  REFUSED(cudaMemcpy(nullptr, own.data(), 64, cudaMemcpyHostToDevice));
}

// Makes batches in every direction.
void batches() {
  Bytes sent = counting(1000);
  Bytes back(1000);
  auto* there = static_cast<unsigned char*>(device(3000));
  void* pinned = nullptr;
  void* managed = nullptr;
  OK(cudaHostAlloc(&pinned, 1000, cudaHostAllocDefault));
  OK(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal));
  void* to[] = {there, there + 100, there + 1000, back.data(), managed, pinned};
  const void* from[] = {sent.data(), pinned, there + 2000, there + 2500, sent.data(), sent.data()};
  const size_t sizes[] = {100, 200, 300, 400, 500, 600};
  cudaMemcpyAttributes attributes = {cudaMemcpySrcAccessOrderStream, {}, {}, 0};
  size_t first = 0;
  for (size_t i = 2; i < 6; ++i) {
    OK(cudaMemcpyBatchAsync(to + i, from + i, sizes + i, 1, &attributes, &first, 1, stream));
  }
  OK(cudaMemcpyBatchAsync_ptsz(to, from, sizes, 1, &attributes, &first, 1, nullptr));
  OK(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream));
  REFUSED(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, nullptr));
  OK(cudaDeviceSynchronize());
  Bytes arrived(100);
  OK(cudaMemcpy(arrived.data(), there, 100, cudaMemcpyDeviceToHost));
  MUST(arrived == Bytes(sent.begin(), sent.begin() + 100));
  // An empty batch has no first copy to take a direction from.
  REFUSED(cudaMemcpyBatchAsync(to, from, sizes, 0, &attributes, &first, 1, stream));
}

}  // namespace

int main(int argc, char**) {
  // Loads the driver as NVIDIA's runtime does at its first call.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  MUST(driver != nullptr);
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (argc > 1) {  // a batch of two directions, and a box in an array
    const Bytes sent = counting(24);
    Bytes back(24);
    auto* there = static_cast<unsigned char*>(device(24));
    void* to[] = {there, back.data()};
    const void* from[] = {sent.data(), there};
    const size_t sizes[] = {24, 24};
    cudaMemcpyAttributes attributes = {cudaMemcpySrcAccessOrderStream, {}, {}, 0};
    size_t first = 0;
    OK(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream));
    cudaMemcpy3DParms p = box(device(sent.size()), sent, {4, 3, 2});
    p.dstArray = reinterpret_cast<cudaArray_t>(&p);
    OK(cudaMemcpy3D(&p));
    return 0;
  }
  boxes();
  batches();
  host_sides(driver);
}
