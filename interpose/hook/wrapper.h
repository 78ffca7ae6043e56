// The parts of every wrapper. A wrapper holds no policy: it finds the real function, looks whether
// to record, and lets calls/ do it.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "interpose/api/functions.h"
#include "interpose/real/binding.h"
#include "interpose/real/resolve.h"
#include "interpose/record/thread.h"

namespace tprof {

// Returns the real function as the wrapper calls it. Even if the wrapper records nothing itself,
// the driver calls that the function makes are part of the call.
template <Fn kFn, typename R, typename... A>
auto callable(R (*function)(A...)) {
  if constexpr (info(kFn).library == Library::cudart && !moves_data(kFn)) {
    return [function](A... arguments) {
      const DepthGuard guard(t_thread);
      return function(arguments...);
    };
  } else {
    return function;
  }
}

// In a per-thread twin (_ptds, _ptsz) stream 0 means the thread's own stream.
inline cudaStream_t legacy(cudaStream_t stream) {
  return stream;
}
inline cudaStream_t per_thread(cudaStream_t stream) {
  return stream == nullptr ? cudaStreamPerThread : stream;
}

}  // namespace tprof

#define TPROF_EXPORT extern "C" __attribute__((visibility("default")))

// Defines `real`: the function behind this wrapper, typed by the vendor's own declaration, so that
// a changed prototype is an error at compile time. Returns `missing` if the process has none.
#define TPROF_REAL(function, type, missing)                                      \
  const auto real_address = reinterpret_cast<type>(tprof::resolve::real(         \
      tprof::Fn::function, __builtin_return_address(0), tprof::t_thread.bound)); \
  if (real_address == nullptr) [[unlikely]] {                                    \
    return missing;                                                              \
  }                                                                              \
  const auto real = tprof::callable<tprof::Fn::function>(real_address);

// Defines a wrapper of the runtime's function, whose body uses `real`. It is declared by its
// definition: the vendor's C++ headers overload some of the names, and name the twins only by a
// macro that replaces the plain ones. Where they declare it too, the two have to agree.
#define TPROF_CUDART_WRAPPER(function, parameters, ...)             \
  extern "C" cudaError_t function parameters;                       \
  TPROF_EXPORT cudaError_t function parameters {                    \
    using Type = cudaError_t(*) parameters;                         \
    TPROF_REAL(function, Type, cudaErrorSharedObjectSymbolNotFound) \
    __VA_ARGS__                                                     \
  }

#define TPROF_REAL_NCCL(function) TPROF_REAL(function, decltype(&::function), ncclSystemError)
#define TPROF_REAL_CUDART(function) \
  TPROF_REAL(function, decltype(&::function), cudaErrorSharedObjectSymbolNotFound)

// Used if a wrapper of a function that moves data does not record: `call` is the real one.
#define TPROF_PASS_ON(call)                                                        \
  do {                                                                             \
    if (!tprof::t_thread.at_rest()) tprof::passed_on(__builtin_return_address(0)); \
    return call;                                                                   \
  } while (false)

#define TPROF_UNPAREN(...) __VA_ARGS__

// Makes wrappers of the rows of a table, by WRAPPER(meant, function, ...) with the columns behind
// `since`.
#define TPROF_ONE(function, since, ...) WRAPPER(legacy, function, __VA_ARGS__)
#define TPROF_BOTH(function, twin, since, ...) \
  WRAPPER(legacy, function, __VA_ARGS__)       \
  WRAPPER(per_thread, twin, __VA_ARGS__)

// Defines a wrapper as a function of another name, any_<function>: for prototypes that no one
// header has, and for names to which cuda.h gives a newer meaning by a macro.
#define TPROF_EXPORT_ANY(result, function, parameters)              \
  TPROF_EXPORT result any_##function parameters __asm__(#function); \
  TPROF_EXPORT result any_##function parameters
