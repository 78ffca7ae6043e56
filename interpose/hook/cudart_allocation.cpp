// The wrappers of the CUDA runtime's functions that allocate and free, generated from api/cudart.h.
// Without TPROF_MEMORY=1 they pass every call straight through.
#include "interpose/hook/wrapper.h"
#include "interpose/record/allocation_calls.h"

#define WRAPPER(stream_meant, function, parameters, arguments, step) \
  TPROF_CUDART_WRAPPER(function, parameters, return TPROF_BOOKED(stream_meant, arguments, step);)

#define X(function, since, parameters, arguments, step) \
  WRAPPER(legacy, function, parameters, arguments, step)
TPROF_CUDART_ALLOCATION(X)
#undef X
#define X(function, twin, since, parameters, arguments, step) \
  WRAPPER(legacy, function, parameters, arguments, step)      \
  WRAPPER(per_thread, twin, parameters, arguments, step)
TPROF_CUDART_ALLOCATION_ASYNC(X)
#undef X
#undef WRAPPER
