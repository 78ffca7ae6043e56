// The wrappers of the CUDA runtime's copies, generated from api/cudart.h.
#include "interpose/calls/copy_call.h"
#include "interpose/calls/region_copy.h"
#include "interpose/hook/wrapper.h"

using tprof::region_copy;

#define WRAPPER(meant, function, parameters, arguments, reading)                                \
  TPROF_CUDART_WRAPPER(                                                                         \
      function, parameters, tprof::Thread* t = tprof::recording_thread();                       \
      if (t == nullptr) TPROF_PASS_ON(real arguments); tprof::CopyArgs a TPROF_UNPAREN reading; \
      a.stream = tprof::meant(a.stream);                                                        \
      return tprof::copy_call<tprof::Fn::function>(*t, a, [&] { return real arguments; });)
TPROF_CUDART_COPY(TPROF_BOTH)
TPROF_CUDART_COPY_PEER(TPROF_ONE)
#undef WRAPPER
