// Reads the driver's addresses and boxes. Its boxes are in bytes, whatever takes part in the copy.
#pragma once

#include <cuda.h>

#include "interpose/real/driver_copy_args.h"

namespace tprof {

inline const void* address(CUdeviceptr pointer) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is an integer here
  return reinterpret_cast<const void*>(pointer);
}

inline bool is_host(CUmemorytype type) {
  return type == CU_MEMORYTYPE_HOST;
}

// Returns where one side of a box lies. Null: in an array.
inline const void* side(CUmemorytype type, const void* host, CUdeviceptr device) {
  return is_host(type) ? host : type == CU_MEMORYTYPE_ARRAY ? nullptr : address(device);
}

// If a side is unified, its pointer tells where it is.
template <typename Region>
cudaMemcpyKind kind_of(const Region& b) {
  if (b.dstMemoryType == CU_MEMORYTYPE_UNIFIED || b.srcMemoryType == CU_MEMORYTYPE_UNIFIED) {
    return cudaMemcpyDefault;
  }
  if (is_host(b.srcMemoryType)) {
    return is_host(b.dstMemoryType) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  }
  return is_host(b.dstMemoryType) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

template <typename Region>
CopyArgs region_copy(const Region* b, CUstream stream, bool sync) {
  if (b == nullptr) return {nullptr, nullptr, 0, cudaMemcpyDefault, stream, sync};
  std::size_t bytes = b->WidthInBytes * b->Height;
  if constexpr (requires { b->Depth; }) bytes *= b->Depth;
  return {.dst = side(b->dstMemoryType, b->dstHost, b->dstDevice),
          .src = side(b->srcMemoryType, b->srcHost, b->srcDevice),
          .bytes = bytes,
          .kind = kind_of(*b),
          .stream = stream,
          .sync = sync};
}

}  // namespace tprof
