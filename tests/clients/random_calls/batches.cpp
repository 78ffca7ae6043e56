// Several copies in one call, and the copies of the driver.
#include <cuda.h>
#include <dlfcn.h>

#include "../per_thread_copies.h"
#include "copies.h"

namespace {

constexpr std::size_t kMost = 6;

void lines(Dice& d, const Rank& r, std::size_t count, cudaStream_t stream, bool must_work) {
  void* to[kMost];
  const void* from[kMost];
  std::size_t sizes[kMost];
  const Ends e = draw_ends(d, r);  // a batch has one direction
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = e.to;
    from[i] = e.from;
    sizes[i] = 1 + d.size(5000);
  }
  cudaMemcpyAttributes attributes = {cudaMemcpySrcAccessOrderStream, {}, {}, 0};
  std::size_t first = 0;
  const bool twin = must_work && d.chance(30);
  const cudaError_t result =
      twin ? CALL(cudaMemcpyBatchAsync_ptsz)(to, from, sizes, count, &attributes, &first, 1, stream)
           : cudaMemcpyBatchAsync(to, from, sizes, count, &attributes, &first, 1, stream);
  MUST((result == cudaSuccess) == must_work);
  if (!must_work) MUST(cudaGetLastError() == result);
}

template <class F>
F* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = nullptr;
  if (library != nullptr) found = dlsym(library, name);
  MUST(found != nullptr);
  return reinterpret_cast<F*>(found);
}
#define DRIVER(function) driver<decltype(function)>(#function)

}  // namespace

void batch_copy(Dice& d, const Rank& r) {
  const std::size_t count = 1 + d.below(kMost);
  cudaStream_t stream = r.streams[d.below(3)];
  lines(d, r, count, stream, true);
}

void driver_copy(Dice& d, const Rank& r) {
  const auto device = reinterpret_cast<CUdeviceptr>(r.memory + d.below(kRegion));
  const auto other = reinterpret_cast<CUdeviceptr>(r.memory + d.below(kRegion));
  char* host = (d.chance(50) ? r.pinned : r.pageable) + d.below(kRegion);
  const std::size_t bytes = 1 + d.size(kRegion - 1);
  CUstream stream = r.streams[d.below(3)];
  CUDA_MEMCPY2D box{};
  box.srcMemoryType = CU_MEMORYTYPE_HOST;
  box.srcHost = host;
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = device;
  box.srcPitch = box.dstPitch = 256;
  box.WidthInBytes = 1 + d.below(200);
  box.Height = 1 + d.below(20);
  switch (d.below(8)) {
    case 0:
      OK(DRIVER(cuMemcpyHtoD_v2)(device, host, bytes));
      return;
    case 1:
      OK(DRIVER(cuMemcpyDtoH_v2)(host, device, bytes));
      return;
    case 2:
      OK(DRIVER(cuMemcpyHtoDAsync_v2)(device, host, bytes, stream));
      return;
    case 3:
      OK(DRIVER(cuMemcpyDtoHAsync_v2)(host, device, bytes, stream));
      return;
    case 4:
      OK(DRIVER(cuMemcpyDtoDAsync_v2)(device, other, bytes, stream));
      return;
    case 5:
      OK(DRIVER(cuMemcpyAsync)(device, reinterpret_cast<CUdeviceptr>(host), bytes, stream));
      return;
    case 6:
      OK(DRIVER(cuMemcpy2D_v2)(&box));
      return;
    default:
      OK(DRIVER(cuMemcpy)(device, other, bytes));
  }
}
