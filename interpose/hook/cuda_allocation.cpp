// The wrappers of the CUDA driver's functions that allocate and free, generated from api/cuda.h.
// Without TPROF_MEMORY=1 they pass every call straight through; with it they book the calls that
// come from no wrapper: a call of the runtime and the driver call that it causes are one.
#include "interpose/hook/any_cuda.h"
#include "interpose/record/allocation_calls.h"

#define WRAPPER(stream_meant, function, parameters, arguments, step) \
  TPROF_CUDA_WRAPPER(function, parameters, return TPROF_BOOKED(stream_meant, arguments, step);)

#define X(function, name, since, parameters, arguments, step) \
  WRAPPER(legacy, function, parameters, arguments, step)
TPROF_CUDA_ALLOCATION(X)
#undef X
#define X(function, twin, name, since, parameters, arguments, step) \
  WRAPPER(legacy, function, parameters, arguments, step)            \
  WRAPPER(per_thread, twin, parameters, arguments, step)
TPROF_CUDA_ALLOCATION_ASYNC(X)
#undef X
#undef WRAPPER
