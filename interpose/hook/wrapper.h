// The parts of every wrapper. A wrapper has no policy: it finds the real function, checks whether
// to record, and leaves that to calls/.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <type_traits>

#include "interpose/api/functions.h"
#include "interpose/real/driver.h"
#include "interpose/real/resolve.h"
#include "interpose/record/thread.h"
#include "interpose/session/config.h"

namespace tprof {

// Returns the real function for the wrapper to call. Even if the wrapper does not record, driver
// calls inside the function are part of its call.
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

// The result of a wrapper if the process lacks the function.
template <typename R, typename... A>
constexpr R missing(R (*)(A...)) {
  constexpr int kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED
  if constexpr (std::is_same_v<R, ncclResult_t>) return ncclSystemError;
  if constexpr (std::is_same_v<R, cudaError_t>) return cudaErrorSharedObjectSymbolNotFound;
  if constexpr (std::is_same_v<R, CUresult>) return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
  return static_cast<R>(kNotInitialized);
}

// Returns the thread if driver calls count. Updates its current device, which may have been set
// without a wrapper.
inline Thread* recording_driver() {
  Thread* t = opt_in::driver() ? recording_thread() : nullptr;
  if (t != nullptr) t->device = driver::current_device(t->device);
  return t;
}

// In the per-thread variants (_ptds, _ptsz) stream 0 means the thread's own stream.
inline cudaStream_t legacy(cudaStream_t stream) {
  return stream;
}
inline cudaStream_t per_thread(cudaStream_t stream) {
  return stream == nullptr ? cudaStreamPerThread : stream;
}

}  // namespace tprof

#define TPROF_EXPORT extern "C" __attribute__((visibility("default")))

// Defines `real`, the wrapped function. Returns missing() if the process has none.
#define TPROF_REAL(function, type)                                               \
  const auto real_address = reinterpret_cast<type>(tprof::resolve::real(         \
      tprof::Fn::function, __builtin_return_address(0), tprof::t_thread.bound)); \
  if (real_address == nullptr) [[unlikely]] {                                    \
    return tprof::missing(type{});                                               \
  }                                                                              \
  const auto real = tprof::callable<tprof::Fn::function>(real_address);

// Defines a wrapper, whose body uses `real`. The definition is also the declaration: the vendor's
// C++ headers overload some names, and declare the per-thread variants only through a macro. If
// they declare it, too, both must agree, so a changed prototype is a compile error.
#define TPROF_TYPED(result, function, parameters, ...) \
  extern "C" result function parameters;               \
  TPROF_EXPORT result function parameters {            \
    using Type = result(*) parameters;                 \
    TPROF_REAL(function, Type)                         \
    __VA_ARGS__                                        \
  }

// Defines a wrapper under another name, any_<function>: for prototypes that no single header has,
// and for names that cuda.h redefines by a macro.
#define TPROF_ANY(result, function, parameters, ...)                \
  namespace tprof {                                                 \
  TPROF_EXPORT result any_##function parameters __asm__(#function); \
  TPROF_EXPORT result any_##function parameters {                   \
    using Type = result(*) parameters;                              \
    TPROF_REAL(function, Type)                                      \
    __VA_ARGS__                                                     \
  }                                                                 \
  }

// For wrappers of data-moving functions that do not record: `call` is the real call.
#define TPROF_PASS_ON(call)                                                        \
  do {                                                                             \
    if (!tprof::t_thread.at_rest()) tprof::passed_on(__builtin_return_address(0)); \
    return call;                                                                   \
  } while (false)

#define TPROF_UNPAREN(...) __VA_ARGS__

// Makes the step that a row names, of a namespace. `stream_meant`: legacy or per_thread; a row says
// meant(stream).
#define TPROF_STEP(of, stream_meant, step)                       \
  [&] {                                                          \
    using namespace tprof::of;                                   \
    [[maybe_unused]] constexpr auto meant = tprof::stream_meant; \
    return TPROF_UNPAREN step;                                   \
  }

// Makes wrappers from the rows of a table: WRAPPER(meant, function, ...) with the columns after
// `since`.
#define TPROF_ONE(function, since, ...) WRAPPER(legacy, function, __VA_ARGS__)
#define TPROF_BOTH(function, twin, since, ...) \
  WRAPPER(legacy, function, __VA_ARGS__)       \
  WRAPPER(per_thread, twin, __VA_ARGS__)
