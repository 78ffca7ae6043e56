// The wrappers of cudaProfilerStart and cudaProfilerStop, generated from api/cudart.h: with
// TPROF_SCHEDULE=profiler they open and close the window.
#include "interpose/hook/wrapper.h"
#include "interpose/write/windows.h"

#define X(function, since, on)                                                               \
  TPROF_TYPED(cudaError_t, function, (), if (on) tprof::windows::switched(true);             \
              const cudaError_t result = real(); if (!(on)) tprof::windows::switched(false); \
              return result;)
TPROF_CUDART_PROFILER(X)
#undef X
