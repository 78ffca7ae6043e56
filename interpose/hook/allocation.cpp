// The wrappers of functions that allocate and free, generated from api/cudart.h and api/cuda.h.
// Without TPROF_MEMORY=1 they pass every call straight through. A call of the runtime and the
// driver call that it causes are one.
#include "interpose/hook/any_cuda.h"
#include "interpose/hook/wrapper.h"
#include "interpose/record/allocation_calls.h"

#define WRAPPER(stream_meant, function, parameters, arguments, step) \
  TPROF_CUDART_WRAPPER(function, parameters,                         \
                       return TPROF_ALLOCATION(stream_meant, arguments, step);)
TPROF_CUDART_ALLOCATION(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER

#define WRAPPER(stream_meant, function, name, parameters, arguments, step) \
  TPROF_CUDA_WRAPPER(function, parameters, return TPROF_ALLOCATION(stream_meant, arguments, step);)
TPROF_CUDA_ALLOCATION(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER
