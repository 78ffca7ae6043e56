// The wrappers of the CUDA runtime's copies, generated from api/cudart.h.
#include "interpose/calls/copy_call.h"
#include "interpose/calls/region_copy.h"
#include "interpose/hook/wrapper.h"

using tprof::region_copy;

#define TPROF_COPY_WRAPPER(function, since, parameters, arguments, reading) \
  TPROF_COPY_WRAPPER_ON(nullptr, function, parameters, arguments, reading)
#define TPROF_COPY_WRAPPER_ON(own, function, parameters, arguments, reading)                    \
  TPROF_CUDART_WRAPPER(                                                                         \
      function, parameters, tprof::Thread* t = tprof::recording_thread();                       \
      if (t == nullptr) TPROF_PASS_ON(real arguments); tprof::CopyArgs a TPROF_UNPAREN reading; \
      if (a.stream == nullptr) a.stream = own;                                                  \
      return tprof::copy_call<tprof::Fn::function>(*t, a, [&] { return real arguments; });)

// In a per-thread twin stream 0 means the thread's own stream.
#define TPROF_COPY_WRAPPERS(function, twin, since, parameters, arguments, reading) \
  TPROF_COPY_WRAPPER(function, since, parameters, arguments, reading)              \
  TPROF_COPY_WRAPPER_ON(cudaStreamPerThread, twin, parameters, arguments, reading)

TPROF_CUDART_COPY(TPROF_COPY_WRAPPERS)
TPROF_CUDART_COPY_PEER(TPROF_COPY_WRAPPER)
