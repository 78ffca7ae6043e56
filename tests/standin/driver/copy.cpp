// The driver's copies.
#include "engine/copy.h"

#include "driver/entry.h"
#include "engine/array.h"

using namespace standin;

namespace {

Region line(CUdeviceptr dst, CUdeviceptr src, size_t count) {
  return {pointer(dst), pointer(src), count};
}

// One side of a box: host or device memory, or an array, which has its own pitch.
struct Side {
  char* at;
  size_t pitch, slice;
};
Side side(CUmemorytype type, const void* host, CUdeviceptr device, CUarray handle, size_t pitch,
          size_t slice) {
  if (type == CU_MEMORYTYPE_ARRAY) {
    const auto& array = *reinterpret_cast<const cudaArray*>(handle);
    return {array.base, array.pitch(), array.slice()};
  }
  const void* base = type == CU_MEMORYTYPE_HOST ? host : pointer(device);
  return {static_cast<char*>(const_cast<void*>(base)), pitch, slice};
}

template <class Box>
Region block(const Box& c) {
  size_t depth = 1, dst_z = 0, src_z = 0, dst_slice = 0, src_slice = 0;
  if constexpr (requires { c.Depth; }) {
    depth = c.Depth;
    dst_z = c.dstZ;
    src_z = c.srcZ;
    dst_slice = c.dstPitch * c.dstHeight;
    src_slice = c.srcPitch * c.srcHeight;
  }
  const Side dst = side(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstPitch, dst_slice);
  const Side src = side(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcPitch, src_slice);
  return {.dst = dst.at + dst_z * dst.slice + c.dstY * dst.pitch + c.dstXInBytes,
          .src = src.at + src_z * src.slice + c.srcY * src.pitch + c.srcXInBytes,
          .width = c.WidthInBytes,
          .height = c.Height,
          .depth = depth,
          .dst_pitch = dst.pitch,
          .src_pitch = src.pitch,
          .dst_slice = dst.slice,
          .src_slice = src.slice};
}

// A row of a one-dimensional array, from an offset in bytes.
char* in(CUarray array, size_t offset) {
  return reinterpret_cast<const cudaArray*>(array)->base + offset;
}

// What the caller says of its sides; pointers that it calls unified tell it themselves.
template <class Box>
cudaMemcpyKind kind_of(const Box& c) {
  const CUmemorytype from = c.srcMemoryType, to = c.dstMemoryType;
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  return static_cast<cudaMemcpyKind>((from == CU_MEMORYTYPE_HOST ? 0 : 2) +
                                     (to == CU_MEMORYTYPE_HOST ? 0 : 1));
}

// Each under the name that the library exports, and its twin for callers with a default stream of
// each thread's own.
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
SYNC(cuMemcpyDtoA_v2, (CUarray dst, size_t offset, CUdeviceptr src, size_t count),
     (Region{in(dst, offset), pointer(src), count}), cudaMemcpyDeviceToDevice)
SYNC(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray src, size_t offset, size_t count),
     (Region{pointer(dst), in(src, offset), count}), cudaMemcpyDeviceToDevice)
SYNC(cuMemcpyHtoA_v2, (CUarray dst, size_t offset, const void* src, size_t count),
     (Region{in(dst, offset), src, count}), cudaMemcpyHostToDevice)
ASYNC(cuMemcpyHtoAAsync_v2, (CUarray dst, size_t offset, const void* src, size_t count),
      (Region{in(dst, offset), src, count}), cudaMemcpyHostToDevice)
SYNC(cuMemcpyAtoH_v2, (void* dst, CUarray src, size_t offset, size_t count),
     (Region{dst, in(src, offset), count}), cudaMemcpyDeviceToHost)
ASYNC(cuMemcpyAtoHAsync_v2, (void* dst, CUarray src, size_t offset, size_t count),
      (Region{dst, in(src, offset), count}), cudaMemcpyDeviceToHost)
SYNC(cuMemcpyAtoA_v2, (CUarray dst, size_t at, CUarray src, size_t offset, size_t count),
     (Region{in(dst, at), in(src, offset), count}), cudaMemcpyDeviceToDevice)
SYNC(cuMemcpyPeer, (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t count),
     line(dst, src, count), cudaMemcpyDeviceToDevice)
ASYNC(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t count),
      line(dst, src, count), cudaMemcpyDeviceToDevice)
SYNC(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* box), block(*box), kind_of(*box))
SYNC(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* box), block(*box), kind_of(*box))
ASYNC(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* box), block(*box), kind_of(*box))
SYNC(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* box), block(*box), kind_of(*box))
ASYNC(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* box), block(*box), kind_of(*box))
SYNC(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* box), block(*box), kind_of(*box))
ASYNC(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* box), block(*box), kind_of(*box))

extern "C" {

CUresult cuMemsetD8(CUdeviceptr dst, unsigned char value, size_t count) {
  return as_driver(fill({pointer(dst), nullptr, count}, value, 1, nullptr, Wait::kYes));
}
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return as_driver(fill({pointer(dst), nullptr, count}, value, 1, stream, Wait::kNo));
}
CUresult cuMemsetD32(CUdeviceptr dst, unsigned value, size_t count) {
  return as_driver(fill({pointer(dst), nullptr, count * 4}, value, 4, nullptr, Wait::kYes));
}
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream) {
  return as_driver(fill({pointer(dst), nullptr, count * 4}, value, 4, stream, Wait::kNo));
}

}  // extern "C"
