// The driver's copies.
#include "engine/copy.h"

#include "driver/entry.h"

using namespace standin;

namespace {

Region line(CUdeviceptr dst, CUdeviceptr src, size_t count) {
  return {pointer(dst), pointer(src), count};
}

// The side of a 2-D copy: host or device pointer, never an array (none can be made here).
const char* side(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y,
                 size_t pitch) {
  const void* base = type == CU_MEMORYTYPE_HOST ? host : pointer(device);
  return static_cast<const char*>(base) + y * pitch + x;
}

Region rectangle(const CUDA_MEMCPY2D& c) {
  return {.dst = const_cast<char*>(
              side(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstXInBytes, c.dstY, c.dstPitch)),
          .src = side(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcXInBytes, c.srcY, c.srcPitch),
          .width = c.WidthInBytes,
          .height = c.Height,
          .dst_pitch = c.dstPitch,
          .src_pitch = c.srcPitch};
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t count) {
  return as_driver(copy("cuMemcpy", line(dst, src, count), cudaMemcpyDefault, nullptr, Wait::kYes));
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream) {
  return as_driver(
      copy("cuMemcpyAsync", line(dst, src, count), cudaMemcpyDefault, stream, Wait::kNo));
}
CUresult cuMemcpyHtoD(CUdeviceptr dst, const void* src, size_t count) {
  return as_driver(copy("cuMemcpyHtoD", {pointer(dst), src, count}, cudaMemcpyHostToDevice, nullptr,
                        Wait::kYes));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void* src, size_t count, CUstream stream) {
  return as_driver(copy("cuMemcpyHtoDAsync", {pointer(dst), src, count}, cudaMemcpyHostToDevice,
                        stream, Wait::kNo));
}
CUresult cuMemcpyDtoH(void* dst, CUdeviceptr src, size_t count) {
  return as_driver(copy("cuMemcpyDtoH", {dst, pointer(src), count}, cudaMemcpyDeviceToHost, nullptr,
                        Wait::kYes));
}
CUresult cuMemcpyDtoHAsync(void* dst, CUdeviceptr src, size_t count, CUstream stream) {
  return as_driver(copy("cuMemcpyDtoHAsync", {dst, pointer(src), count}, cudaMemcpyDeviceToHost,
                        stream, Wait::kNo));
}
CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t count) {
  return as_driver(
      copy("cuMemcpyDtoD", line(dst, src, count), cudaMemcpyDeviceToDevice, nullptr, Wait::kYes));
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream) {
  return as_driver(copy("cuMemcpyDtoDAsync", line(dst, src, count), cudaMemcpyDeviceToDevice,
                        stream, Wait::kNo));
}
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t count) {
  return as_driver(
      copy("cuMemcpyPeer", line(dst, src, count), cudaMemcpyDeviceToDevice, nullptr, Wait::kYes));
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t count,
                           CUstream stream) {
  return as_driver(copy("cuMemcpyPeerAsync", line(dst, src, count), cudaMemcpyDeviceToDevice,
                        stream, Wait::kNo));
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* c) {
  return as_driver(copy("cuMemcpy2D", rectangle(*c), cudaMemcpyDefault, nullptr, Wait::kYes));
}
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* c) {
  return as_driver(
      copy("cuMemcpy2DUnaligned", rectangle(*c), cudaMemcpyDefault, nullptr, Wait::kYes));
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream stream) {
  return as_driver(copy("cuMemcpy2DAsync", rectangle(*c), cudaMemcpyDefault, stream, Wait::kNo));
}

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
