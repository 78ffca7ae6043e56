// Wrappers of the driver's functions, as functions of other names: cuda.h gives many of these a
// newer meaning by a macro.
#pragma once

#include "interpose/hook/driver_thread.h"
#include "interpose/hook/wrapper.h"

namespace tprof {

// Tells `report` of what has worked.
template <typename F>
CUresult told(CUresult result, F&& report) {
  if (result == CUDA_SUCCESS && recording_driver() != nullptr) report();
  return result;
}

}  // namespace tprof

#define TPROF_REAL_CUDA(function, type) \
  TPROF_REAL_OF(function, any_##function, type, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND)
#define ANY(function, parameters)                                     \
  TPROF_EXPORT CUresult any_##function parameters __asm__(#function); \
  TPROF_EXPORT CUresult any_##function parameters
