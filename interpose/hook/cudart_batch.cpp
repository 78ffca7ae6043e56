// The wrappers of the CUDA runtime's batches of copies, generated from api/cudart.h.
#include "interpose/calls/batch.h"

#include "interpose/hook/wrapper.h"

// Defined as functions of other names, since no one header has all of their prototypes.
#define WRAPPER(meant, function, parameters, arguments, reading)                                \
  namespace tprof {                                                                             \
  TPROF_EXPORT_ANY(cudaError_t, function, parameters) {                                         \
    using Type = cudaError_t(*) parameters;                                                     \
    TPROF_REAL(function, Type, cudaErrorSharedObjectSymbolNotFound)                             \
    Thread* t = recording_thread();                                                             \
    if (t == nullptr) TPROF_PASS_ON(real arguments);                                            \
    static constinit resolve::VersionCache version{};                                           \
    [[maybe_unused]] const int cuda = resolve::version(reinterpret_cast<void*>(real), version); \
    Batch batch = TPROF_UNPAREN reading;                                                        \
    batch.stream = meant(batch.stream);                                                         \
    if (!batch.known) [[unlikely]]                                                              \
      note_unknown_version(reinterpret_cast<void*>(real));                                      \
    return batch_call(*t, Fn::function, batch, [&] { return real arguments; });                 \
  }                                                                                             \
  }

TPROF_CUDART_BATCH(TPROF_BOTH)

// The prototype that the reading assumes for CUDA 13: a header that declares another fails here.
// NOLINTBEGIN(readability-redundant-declaration): that is what the declaration is for
#if CUDART_VERSION >= 13000
extern "C" {
cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attributes, size_t* indices,
                                 size_t attributes_count, cudaStream_t stream);
}
#endif
// NOLINTEND(readability-redundant-declaration)
#undef WRAPPER
