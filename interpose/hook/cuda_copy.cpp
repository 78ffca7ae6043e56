// The wrappers of the CUDA driver's copies, generated from api/cuda.h. Without TPROF_DRIVER=1 they
// pass every call straight through; with it they count those that come from no wrapper: a call of
// the runtime and the driver call that it causes are one.
#include "interpose/calls/batch.h"
#include "interpose/calls/copy_call.h"
#include "interpose/hook/any_cuda.h"
#include "interpose/real/region_copy.h"

using tprof::address;
using tprof::CopyArgs;
using tprof::Fn;
using tprof::recording_driver;
using tprof::region_copy;

#define WRAPPER(meant, function, prototype, parameters, arguments, reading)                 \
  TPROF_EXPORT CUresult function parameters {                                               \
    TPROF_REAL(function, decltype(&::prototype), CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND) \
    tprof::Thread* t = recording_driver();                                                  \
    if (t == nullptr) return real arguments;                                                \
    CopyArgs a = TPROF_UNPAREN reading;                                                     \
    a.stream = meant(a.stream);                                                             \
    return tprof::copy_call<Fn::function>(*t, a, [&] { return real arguments; });           \
  }

// cuda.h names the twins only by a macro: they are declared with the plain functions' types.
#define X(function, twin, since, name, parameters, arguments, reading)       \
  extern "C" decltype(::function) twin;                                      \
  WRAPPER(tprof::legacy, function, function, parameters, arguments, reading) \
  WRAPPER(tprof::per_thread, twin, function, parameters, arguments, reading)
TPROF_CUDA_COPY(X)
#undef X
#undef WRAPPER

#define WRAPPER(meant, function, name, until, parameters, arguments, reading)                      \
  TPROF_CUDA_WRAPPER(function, parameters, Thread* t = recording_driver();                         \
                     if (t == nullptr) return real arguments; Batch batch = TPROF_UNPAREN reading; \
                     batch.stream = meant(batch.stream);                                           \
                     return batch_call(*t, Fn::function, batch, [&] { return real arguments; });)
TPROF_CUDA_BATCH(TPROF_BOTH)
#undef WRAPPER
