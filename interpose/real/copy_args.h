// The arguments of a copy, for all copy functions, and its direction.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <iterator>

#include "interpose/format/buckets.h"
#include "interpose/format/coverage.h"
#include "interpose/real/driver.h"
#include "interpose/session/coverage.h"
#include "interpose/session/session.h"

namespace tprof {

struct CopyArgs {
  const void* dst;  // null: an array or a symbol, on the device
  const void* src;
  std::size_t bytes;
  cudaMemcpyKind kind;
  cudaStream_t stream;
  bool sync;
};

// Directions given by the caller. For others we ask the driver, as CUDA's unified addressing does
// (cudaMemcpyDefault).
inline constexpr Bucket kDirections[] = {Bucket::H2H, Bucket::H2D, Bucket::D2H, Bucket::D2D};
constexpr bool is_named(cudaMemcpyKind kind) {
  return static_cast<unsigned>(kind) < std::size(kDirections);
}
inline Bucket bucket_of(const CopyArgs& a) {
  return is_named(a.kind) ? kDirections[a.kind] : driver::direction(a.dst, a.src).bucket;
}

// Reads the driver's addresses and boxes, which are always in bytes.
inline const void* address(CUdeviceptr pointer) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is an integer here
  return reinterpret_cast<const void*>(pointer);
}

inline bool is_host(CUmemorytype type) {
  return type == CU_MEMORYTYPE_HOST;
}

// Returns the address of one side of a box. Null: an array.
inline const void* side(CUmemorytype type, const void* host, CUdeviceptr device) {
  return is_host(type) ? host : type == CU_MEMORYTYPE_ARRAY ? nullptr : address(device);
}

// For a unified side, its pointer decides the direction.
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

// Reads the parameters of cudaMemcpy3D. If a CUDA array takes part, the extent counts elements of a
// size that is not known here: the call counts as 0 bytes, and the coverage notes it.
inline CopyArgs region_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync) {
  if (p == nullptr) return {nullptr, nullptr, 0, cudaMemcpyDefault, stream, sync};
  const bool in_array = p->dstArray != nullptr || p->srcArray != nullptr;
  if (in_array) coverage::note(Note::uncounted, "cudaArray_t");
  return {.dst = p->dstArray == nullptr ? p->dstPtr.ptr : nullptr,
          .src = p->srcArray == nullptr ? p->srcPtr.ptr : nullptr,
          .bytes = in_array ? 0 : p->extent.width * p->extent.height * p->extent.depth,
          .kind = p->kind,
          .stream = stream,
          .sync = sync};
}

}  // namespace tprof
