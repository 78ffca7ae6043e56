// The wrappers of the functions that return the driver's functions. Every CUDA runtime, even a
// linked-in one, gets the driver this way. With TPROF_DRIVER=1, TPROF_MEMORY=1 or
// TPROF_TIMING=events they return wrapped functions.
#include "interpose/api/results.h"
#include "interpose/hook/wrapper.h"
#include "interpose/session/config.h"

using tprof::Fn;
namespace resolve = tprof::resolve;

namespace {

// Maps a name and CUDA version to a function. This must be exact, as a wrong prototype would
// corrupt the caller. Newer major versions may have new prototypes: they are passed through.
constexpr int kNewestKnown = 14000;  // exclusive
struct EntryPoint {
  std::string_view name;
  int since, until;
  Fn function, per_thread;
};
constexpr EntryPoint kEntryPoints[] = {
    {"cuGetProcAddress", 11030, 12000, Fn::cuGetProcAddress, Fn::cuGetProcAddress},
    {"cuGetProcAddress", 12000, kNewestKnown, Fn::cuGetProcAddress_v2, Fn::cuGetProcAddress_v2},
#define X(function, since, name, ...) {#name, since, kNewestKnown, Fn::function, Fn::function},
#define X_TWIN(function, twin, since, name, ...) \
  {#name, since, kNewestKnown, Fn::function, Fn::twin},
    TPROF_CUDA_COPY(X_TWIN) TPROF_CUDA_ALLOCATION(X, X_TWIN) TPROF_CUDA_UNCOUNTED(X, X_TWIN)
#undef X_TWIN
#undef X
#define X(function, since, name, until, ...) {#name, since, until, Fn::function, Fn::function},
#define X_TWIN(function, twin, since, name, until, ...) \
  {#name, since, until, Fn::function, Fn::twin},
        TPROF_CUDA_BATCH(X_TWIN) TPROF_CUDA_GRAPH(X, X_TWIN) TPROF_CUDA_FOLLOW(X, X_TWIN)
#undef X_TWIN
#undef X
            {"cuGraphInstantiate", 12000, kNewestKnown, Fn::cuGraphInstantiateWithFlags,
             Fn::cuGraphInstantiateWithFlags},
};
constexpr int kTwinsSince = 7000;

Fn entry_point(std::string_view name, int version, bool per_thread) {
  for (const EntryPoint& e : kEntryPoints) {
    if (name != e.name || version < e.since || version >= e.until) continue;
    return per_thread && version >= kTwinsSince ? e.per_thread : e.function;
  }
  return Fn::none;
}

bool wrapping() {
  return tprof::opt_in::driver() || tprof::opt_in::memory() || tprof::opt_in::events();
}

void wrap(void** function, const char* name, int version, bool per_thread) {
  if (function == nullptr || name == nullptr) return;
  const Fn fn = entry_point(name, version, per_thread);
  if (fn != Fn::none && resolve::wanted_of_driver(fn)) *function = resolve::bind(fn, *function);
}

// The flags that choose the default stream, the same for driver and runtime.
constexpr unsigned long long kLegacy = 1;
constexpr unsigned long long kPerThread = 2;
bool own_stream(unsigned long long flags, bool twin) {
  return (flags & (kLegacy | kPerThread)) == 0 ? twin : (flags & kPerThread) != 0;
}

// Returns the version of the runtime that `real` belongs to: its cudaGetDriverEntryPoint looks up
// names at that version.
int runtime_version(const void* real) {
  using Query = cudaError_t (*)(int*);
  const auto ask = reinterpret_cast<Query>(resolve::sibling(real, "cudaRuntimeGetVersion"));
  int version = 0;
  return ask != nullptr && ask(&version) == cudaSuccess ? version : 0;
}

}  // namespace

// `name` is looked up at `version`; `own`: per-thread streams if the flags don't say.
#define WRAPPER(kind, result, function, parameters, arguments, entry, version, own)              \
  TPROF_##kind(result, function, parameters, {                                                   \
    const result done = real arguments;                                                          \
    if (tprof::accepted(done) && wrapping()) wrap(entry, name, version, own_stream(flags, own)); \
    return done;                                                                                 \
  })

WRAPPER(TYPED, CUresult, cuGetProcAddress,
        (const char* name, void** function, int version, cuuint64_t flags),
        (name, function, version, flags), function, version, false)
WRAPPER(TYPED, CUresult, cuGetProcAddress_v2,
        (const char* name, void** function, int version, cuuint64_t flags,
         CUdriverProcAddressQueryResult* status),
        (name, function, version, flags, status), function, version, false)

// The runtime's functions, which look up the name at their own version, or at a given one. Their
// last argument came with CUDA 12.0 and is passed on as it is.
#define BOTH(function, parameters, arguments, version)                              \
  WRAPPER(ANY, cudaError_t, function, parameters, arguments, entry, version, false) \
  WRAPPER(ANY, cudaError_t, function##_ptsz, parameters, arguments, entry, version, true)
BOTH(cudaGetDriverEntryPoint,
     (const char* name, void** entry, unsigned long long flags, void* status),
     (name, entry, flags, status), runtime_version(reinterpret_cast<const void*>(real_address)))
BOTH(cudaGetDriverEntryPointByVersion,
     (const char* name, void** entry, unsigned version, unsigned long long flags, void* status),
     (name, entry, version, flags, status), static_cast<int>(version))
#undef BOTH
#undef WRAPPER
