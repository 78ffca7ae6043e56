// Batches of copies, with the prototypes of CUDA 12 and 13.
#include "driver/entry.h"
#include "engine/copy.h"

#undef cuMemcpyBatchAsync

using namespace standin;

namespace {

CUresult batch(const char* function, const CUdeviceptr* dsts, const CUdeviceptr* srcs,
               const size_t* sizes, size_t count, CUstream stream) {
  if (!dsts || !srcs || !sizes || count == 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Region> regions;
  for (size_t i = 0; i < count; ++i) {
    regions.push_back({pointer(dsts[i]), pointer(srcs[i]), sizes[i]});
  }
  return as_driver(copy_batch(function, regions, stream));
}

}  // namespace

// Defines a function and its twin, where no stream means the thread's own.
#define BOTH(function, parameters, call)                                               \
  STANDIN_ENTRY(function, parameters,                                                  \
                [=](const char* name, CUstream s) { return call; }(#function, stream)) \
  STANDIN_ENTRY(function##_ptsz, parameters, [=](const char* name, CUstream s) {       \
    return call;                                                                       \
  }(#function "_ptsz", stream ? stream : cudaStreamPerThread))

BOTH(cuMemcpyBatchAsync,
     (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes*,
      size_t*, size_t, size_t*, CUstream stream),
     batch(name, dsts, srcs, sizes, count, s))
BOTH(cuMemcpyBatchAsync_v2,
     (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes*,
      size_t*, size_t, CUstream stream),
     batch(name, dsts, srcs, sizes, count, s))
