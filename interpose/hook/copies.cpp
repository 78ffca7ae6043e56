// The wrappers of copies, generated from api/cudart.h and api/cuda.h. The driver's wrappers only
// pass calls through without TPROF_DRIVER=1; with it they count calls from outside wrappers: a
// runtime call and the driver call inside it are one.
#include "interpose/calls/copy_call.h"
#include "interpose/hook/wrapper.h"
#include "interpose/real/copy_args.h"

using namespace tprof;

#define RETURN(call) return call
#define BODY(Args, meant, record, function, thread, pass, arguments, reading) \
  Thread* t = thread();                                                       \
  if (t == nullptr) pass(real arguments);                                     \
  Args a = TPROF_UNPAREN reading;                                             \
  a.stream = meant(a.stream);                                                 \
  return record<Fn::function>(*t, a, [&] { return real arguments; });

#define WRAPPER(meant, function, parameters, arguments, reading)                          \
  TPROF_TYPED(cudaError_t, function, parameters,                                          \
              BODY(CopyArgs, meant, copy_call, function, recording_thread, TPROF_PASS_ON, \
                   arguments, reading))
TPROF_CUDART_COPY(TPROF_BOTH)
TPROF_CUDART_COPY_PEER(TPROF_ONE)
#undef WRAPPER

#define WRAPPER(meant, function, name, parameters, arguments, reading) \
  TPROF_TYPED(                                                         \
      CUresult, function, parameters,                                  \
      BODY(CopyArgs, meant, copy_call, function, recording_driver, RETURN, arguments, reading))
TPROF_CUDA_COPY(TPROF_BOTH)
#undef WRAPPER

#define WRAPPER(meant, function, parameters, arguments, reading)                                 \
  TPROF_ANY(cudaError_t, function, parameters,                                                   \
            BODY(Batch, meant, batch_call, function, recording_thread, TPROF_PASS_ON, arguments, \
                 reading))
TPROF_CUDART_BATCH(TPROF_BOTH)
#undef WRAPPER

#define WRAPPER(meant, function, name, until, parameters, arguments, reading) \
  TPROF_ANY(                                                                  \
      CUresult, function, parameters,                                         \
      BODY(Batch, meant, batch_call, function, recording_driver, RETURN, arguments, reading))
TPROF_CUDA_BATCH(TPROF_BOTH)
#undef WRAPPER
#undef BODY
#undef RETURN

// The prototype assumed for CUDA 13: a header with another one does not compile.
// NOLINTBEGIN(readability-redundant-declaration): redundant on purpose
#if CUDART_VERSION >= 13000
extern "C" {
cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attributes, size_t* indices,
                                 size_t attributes_count, cudaStream_t stream);
}
#endif
// NOLINTEND(readability-redundant-declaration)
