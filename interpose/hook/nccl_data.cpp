// The wrappers of NCCL's collectives and point-to-point calls, generated from api/nccl.h.
#include "interpose/calls/nccl_call.h"
#include "interpose/hook/wrapper.h"

using tprof::Bucket;
using tprof::Fn;
using tprof::kNoPeer;
using tprof::NcclArgs;
using tprof::reduce_of;

#define WRAPPER(function, bucket, parameters, arguments, reading)                    \
  TPROF_TYPED(ncclResult_t, function, parameters, {                                  \
    tprof::Thread* t = tprof::recording_thread();                                    \
    if (t == nullptr) TPROF_PASS_ON(real arguments);                                 \
    const NcclArgs a TPROF_UNPAREN reading;                                          \
    return tprof::nccl_call<Fn::function, Bucket::bucket>(                           \
        *t, a, reinterpret_cast<const void*>(real), [&] { return real arguments; }); \
  })

#define X(function, twin, since, bucket, elements, parameters, arguments, reading)  \
  WRAPPER(function, bucket, parameters, arguments, reading)                         \
  WRAPPER(twin, bucket, (TPROF_UNPAREN parameters, const ncclCollConfig_t* config), \
          (TPROF_UNPAREN arguments, config), reading)
TPROF_NCCL_COLLECTIVE(X)
#undef X

#define X(function, since, order, bucket, elements, parameters, arguments, reading) \
  WRAPPER(function, bucket, parameters, arguments, reading)
TPROF_NCCL_OTHER(X)
#undef X
#undef WRAPPER
