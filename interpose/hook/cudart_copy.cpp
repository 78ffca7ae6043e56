// The wrappers of the CUDA runtime's copies, generated from api/cudart.h.
#include "wrapper.h"

using tprof::CopyArgs;
using tprof::Fn;

#define WRAPPER(function, prototype, parameters, arguments, reading)                  \
  TPROF_EXPORT cudaError_t function parameters {                                      \
    TPROF_REAL(function, decltype(&::prototype), cudaErrorSharedObjectSymbolNotFound) \
    tprof::Thread* t = tprof::recording_thread();                                     \
    if (t == nullptr) return real arguments;                                          \
    const CopyArgs a TPROF_UNPAREN reading;                                           \
    return tprof::copy_call<Fn::function>(*t, a, [&] { return real arguments; });     \
  }

// cuda_runtime_api.h names the twins only by a macro that replaces the plain names: they are
// declared here with the plain functions' types.
#define X(function, twin, parameters, arguments, reading)     \
  extern "C" decltype(::function) twin;                       \
  WRAPPER(function, function, parameters, arguments, reading) \
  WRAPPER(twin, function, parameters, arguments, reading)
TPROF_CUDART_COPY(X)
#undef X

#define X(function, parameters, arguments, reading) \
  WRAPPER(function, function, parameters, arguments, reading)
TPROF_CUDART_COPY_PEER(X)
#undef X
