// True for the results of accepted calls.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "interpose/format/record.h"

namespace tprof {

constexpr bool accepted(ncclResult_t result) {
  return nccl_accepted(static_cast<std::uint64_t>(result));
}
constexpr bool accepted(cudaError_t result) {
  return result == cudaSuccess;
}
constexpr bool accepted(CUresult result) {
  return result == CUDA_SUCCESS;
}

}  // namespace tprof
