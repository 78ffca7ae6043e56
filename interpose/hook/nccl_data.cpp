// The wrappers of NCCL's collectives and point-to-point calls, generated from api/nccl.h.
#include "wrapper.h"

using tprof::Bucket;
using tprof::Fn;
using tprof::NcclArgs;
using tprof::reduce_of;

#define X(function, bucket, elements, collective, parameters, arguments, reading)    \
  TPROF_EXPORT ncclResult_t function parameters {                                    \
    TPROF_REAL_NCCL(function)                                                        \
    tprof::Thread* t = tprof::recording_thread();                                    \
    if (t == nullptr) return real arguments;                                         \
    const NcclArgs a TPROF_UNPAREN reading;                                          \
    return tprof::nccl_call<Fn::function, Bucket::bucket>(                           \
        *t, a, reinterpret_cast<const void*>(real), [&] { return real arguments; }); \
  }
TPROF_NCCL_DATA(X)
#undef X
