// The wrappers of stream capture and of CUDA graphs, generated from api/cudart.h.
#include "interpose/hook/graph_call.h"
#include "interpose/hook/wrapper.h"

#define BODY(function, wrapper, stream_meant, parameters, arguments, step)           \
  {                                                                                  \
    using namespace tprof::hook;                                                     \
    using Type = cudaError_t(*) parameters;                                          \
    TPROF_REAL(function, Type, cudaErrorSharedObjectSymbolNotFound)                  \
    return TPROF_GRAPH_CALL(tprof::recording_thread, stream_meant, arguments, step); \
  }
#define TYPED(function, meant, parameters, arguments, step)                                \
  extern "C" cudaError_t function parameters;                                              \
  TPROF_EXPORT cudaError_t function parameters BODY(function, function, meant, parameters, \
                                                    arguments, step)
#define ANY(function, meant, parameters, arguments, step) \
  TPROF_EXPORT_ANY(cudaError_t, function, parameters)     \
  BODY(function, any_##function, meant, parameters, arguments, step)

#define X(function, twin, since, kind, parameters, arguments, step) \
  kind(function, legacy, parameters, arguments, step)               \
      kind(twin, per_thread, parameters, arguments, step)
TPROF_CUDART_GRAPH(X)
#undef X
#define X(function, since, kind, parameters, arguments, step) \
  kind(function, legacy, parameters, arguments, step)
TPROF_CUDART_GRAPH_ONLY(X)
#undef X
#undef ANY
#undef TYPED
#undef BODY
