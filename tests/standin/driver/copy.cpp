// The driver's copies.
#include "engine/copy.h"

#include "driver/box.h"
#include "driver/entry.h"

using namespace standin;

namespace {

Region line(CUdeviceptr dst, CUdeviceptr src, size_t count) {
  return {pointer(dst), pointer(src), count};
}

// Each copy has the name that the library exports, and a twin for callers with a per-thread default
// stream.
CUresult sync_copy(const char* function, const Region& region, cudaMemcpyKind kind, bool twin) {
  return as_driver(copy(function, region, kind, twin ? cudaStreamPerThread : nullptr, Wait::kYes));
}
CUresult async_copy(const char* function, const Region& region, cudaMemcpyKind kind,
                    CUstream stream, bool twin) {
  CUstream own = twin && stream == nullptr ? cudaStreamPerThread : stream;
  return as_driver(copy(function, region, kind, own, Wait::kNo));
}

#define SYNC(function, parameters, region, kind)                                              \
  STANDIN_ENTRY(function, (PARAMETERS parameters), sync_copy(#function, region, kind, false)) \
  STANDIN_ENTRY(function##_ptds, (PARAMETERS parameters),                                     \
                sync_copy(#function "_ptds", region, kind, true))
#define ASYNC(function, parameters, region, kind)                          \
  STANDIN_ENTRY(function, (PARAMETERS parameters, CUstream stream),        \
                async_copy(#function, region, kind, stream, false))        \
  STANDIN_ENTRY(function##_ptsz, (PARAMETERS parameters, CUstream stream), \
                async_copy(#function "_ptsz", region, kind, stream, true))
#define PARAMETERS(...) __VA_ARGS__

}  // namespace

SYNC(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t count), line(dst, src, count),
     cudaMemcpyDefault)
ASYNC(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t count), line(dst, src, count),
      cudaMemcpyDefault)
SYNC(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void* src, size_t count),
     (Region{pointer(dst), src, count}), cudaMemcpyHostToDevice)
ASYNC(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void* src, size_t count),
      (Region{pointer(dst), src, count}), cudaMemcpyHostToDevice)
SYNC(cuMemcpyDtoH_v2, (void* dst, CUdeviceptr src, size_t count),
     (Region{dst, pointer(src), count}), cudaMemcpyDeviceToHost)
ASYNC(cuMemcpyDtoHAsync_v2, (void* dst, CUdeviceptr src, size_t count),
      (Region{dst, pointer(src), count}), cudaMemcpyDeviceToHost)
SYNC(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t count), line(dst, src, count),
     cudaMemcpyDeviceToDevice)
ASYNC(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t count), line(dst, src, count),
      cudaMemcpyDeviceToDevice)
SYNC(cuMemcpyPeer, (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t count),
     line(dst, src, count), cudaMemcpyDeviceToDevice)
ASYNC(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t count),
      line(dst, src, count), cudaMemcpyDeviceToDevice)
SYNC(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* box), block(*box), kind_of(*box))
SYNC(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* box), block(*box), kind_of(*box))
ASYNC(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* box), block(*box), kind_of(*box))
SYNC(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* box), block(*box), kind_of(*box))
ASYNC(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* box), block(*box), kind_of(*box))

extern "C" {

CUresult cuMemsetD32(CUdeviceptr dst, unsigned value, size_t count) {
  return as_driver(fill({pointer(dst), nullptr, count * 4}, value, 4, nullptr, Wait::kYes));
}
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream) {
  return as_driver(fill({pointer(dst), nullptr, count * 4}, value, 4, stream, Wait::kNo));
}

}  // extern "C"
