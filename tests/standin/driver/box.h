// Converts the driver's copy descriptors to Regions.
#pragma once

#include "driver/entry.h"
#include "engine/copy.h"

namespace standin {

// One side of a box, in host or device memory.
struct Side {
  char* at;
  size_t pitch, slice;
};
inline Side side(CUmemorytype type, const void* host, CUdeviceptr device, size_t pitch,
                 size_t slice) {
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
  const Side dst = side(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstPitch, dst_slice);
  const Side src = side(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcPitch, src_slice);
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

// Returns the direction that the caller declares. Unified pointers tell it themselves.
template <class Box>
cudaMemcpyKind kind_of(const Box& c) {
  const CUmemorytype from = c.srcMemoryType, to = c.dstMemoryType;
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  return static_cast<cudaMemcpyKind>((from == CU_MEMORYTYPE_HOST ? 0 : 2) +
                                     (to == CU_MEMORYTYPE_HOST ? 0 : 1));
}

}  // namespace standin
