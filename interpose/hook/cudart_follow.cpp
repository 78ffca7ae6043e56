// The wrappers of launches and waits, generated from api/cudart.h. Without TPROF_TIMING=events they
// pass every call straight through.
#include "interpose/device/timing.h"
#include "interpose/hook/follow.h"

#define WRAPPER(function, stream_meant, parameters, arguments, step) \
  TPROF_CUDART_WRAPPER(function, parameters, TPROF_FOLLOWED(stream_meant, arguments, step))

#define X(function, twin, since, parameters, arguments, step) \
  WRAPPER(function, legacy, parameters, arguments, step)      \
  WRAPPER(twin, per_thread, parameters, arguments, step)
TPROF_CUDART_FOLLOW(X)
#undef X
#define X(function, since, parameters, arguments, step) \
  WRAPPER(function, legacy, parameters, arguments, step)
TPROF_CUDART_FOLLOW_ONLY(X)
#undef X
#undef WRAPPER
