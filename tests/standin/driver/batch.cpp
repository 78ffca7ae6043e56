// Batches of copies, with the prototypes of CUDA 12 and 13.
#include "driver/entry.h"
#include "engine/copy.h"

#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

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

// Operands are addresses; arrays are not supported here.
CUresult boxes(const char* function, size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations,
               CUstream stream) {
  if (!operations || count == 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Region> regions;
  for (size_t i = 0; i < count; ++i) {
    const CUDA_MEMCPY3D_BATCH_OP& o = operations[i];
    const auto &dst = o.dst.op.ptr, &src = o.src.op.ptr;
    regions.push_back({.dst = pointer(dst.ptr),
                       .src = pointer(src.ptr),
                       .width = o.extent.width,
                       .height = o.extent.height,
                       .depth = o.extent.depth,
                       .dst_pitch = dst.rowLength,
                       .src_pitch = src.rowLength,
                       .dst_slice = dst.rowLength * dst.layerHeight,
                       .src_slice = src.rowLength * src.layerHeight});
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
BOTH(cuMemcpy3DBatchAsync,
     (size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, size_t*, unsigned long long,
      CUstream stream),
     boxes(name, count, operations, s))
BOTH(cuMemcpy3DBatchAsync_v2,
     (size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, unsigned long long, CUstream stream),
     boxes(name, count, operations, s))
// These are newer than the export list; cuGetProcAddress returns them.
BOTH(cuMemcpyWithAttributesAsync,
     (CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes*, CUstream stream),
     batch(name, &dst, &src, &size, 1, s))
BOTH(cuMemcpy3DWithAttributesAsync,
     (CUDA_MEMCPY3D_BATCH_OP * operation, unsigned long long, CUstream stream),
     boxes(name, 1, operation, s))
