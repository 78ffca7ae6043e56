// A copy's arguments, whatever function asked for it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tprof {

struct CopyArgs {
  const void* dst;  // null: an array or a symbol, on the device
  const void* src;
  std::size_t bytes;
  cudaMemcpyKind kind;
  cudaStream_t stream;
  bool sync;
};

}  // namespace tprof
