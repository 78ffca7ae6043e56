// The wrappers of the driver's launches and waits, generated from api/cuda.h. A call of the runtime
// and the driver call that it causes are one.
#include "interpose/device/timing.h"
#include "interpose/hook/any_cuda.h"
#include "interpose/hook/follow.h"

#define WRAPPER(function, stream_meant, parameters, arguments, step) \
  TPROF_CUDA_WRAPPER(function, parameters, TPROF_FOLLOWED(stream_meant, arguments, step))

#define X(function, twin, name, since, until, parameters, arguments, step) \
  WRAPPER(function, legacy, parameters, arguments, step)                   \
  WRAPPER(twin, per_thread, parameters, arguments, step)
TPROF_CUDA_FOLLOW(X)
#undef X
#define X(function, name, since, until, parameters, arguments, step) \
  WRAPPER(function, legacy, parameters, arguments, step)
TPROF_CUDA_FOLLOW_ONLY(X)
#undef X
#undef WRAPPER
