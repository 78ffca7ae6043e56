// Wrappers of the driver's functions, as functions of other names.
#pragma once

#include "interpose/hook/wrapper.h"
#include "interpose/real/driver_memory.h"
#include "interpose/record/thread.h"
#include "interpose/session/config.h"

namespace tprof {

// Returns the thread if calls of the driver count, with its current device, which it may not have
// set through a wrapper.
inline Thread* recording_driver() {
  Thread* t = opt_in::driver() ? recording_thread() : nullptr;
  if (t != nullptr) t->device = driver::current_device(t->device);
  return t;
}

}  // namespace tprof

#define TPROF_REAL_CUDA(function, type) \
  TPROF_REAL(function, type, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND)
#define ANY_CUDA(function, parameters) TPROF_EXPORT_ANY(CUresult, function, parameters)
// The body uses `real`.
#define TPROF_CUDA_WRAPPER(function, parameters, ...) \
  namespace tprof {                                   \
  ANY_CUDA(function, parameters) {                    \
    using Type = CUresult(*) parameters;              \
    TPROF_REAL_CUDA(function, Type)                   \
    __VA_ARGS__                                       \
  }                                                   \
  }
