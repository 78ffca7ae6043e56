// The wrappers of the driver's stream captures and CUDA graphs, generated from api/cuda.h. Without
// TPROF_DRIVER=1 they pass every call straight through; with it they report those that come from no
// wrapper, such as those of a runtime that is linked in.
#include "interpose/hook/any_cuda.h"
#include "interpose/hook/graph_call.h"

#define WRAPPER(function, stream_meant, parameters, arguments, step) \
  TPROF_CUDA_WRAPPER(function, parameters, using namespace hook;     \
                     return TPROF_GRAPH_CALL(recording_driver, stream_meant, arguments, step);)

#define X(function, twin, name, since, until, parameters, arguments, step) \
  WRAPPER(function, legacy, parameters, arguments, step)                   \
  WRAPPER(twin, per_thread, parameters, arguments, step)
TPROF_CUDA_GRAPH(X)
#undef X
#define X(function, name, since, until, parameters, arguments, step) \
  WRAPPER(function, legacy, parameters, arguments, step)
TPROF_CUDA_GRAPH_ONLY(X)
#undef X
#undef WRAPPER
