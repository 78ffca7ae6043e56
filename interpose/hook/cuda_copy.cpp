// The wrappers of the CUDA driver's copies, generated from api/cuda.h. Without TPROF_DRIVER=1 they
// pass every call straight through; with it they count those that come from no wrapper: a call of
// the runtime and the driver call that it causes are one.
#include "interpose/capture/batch.h"
#include "interpose/resolve/driver_function.h"
#include "interpose/session/opt_in.h"
#include "wrapper.h"

using tprof::CopyArgs;
using tprof::Fn;

namespace {

const void* at(CUdeviceptr address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is an integer here
  return reinterpret_cast<const void*>(address);
}

// The current device of a thread that did not set it through a wrapper. The driver keeps it by
// thread, and its answers touch no error state.
void ask_device(tprof::Thread& t) {
  static constinit tprof::resolve::DriverFunction<int(int*)> query("cuCtxGetDevice");
  auto* ask = query.get();
  int device = 0;
  if (ask != nullptr && ask(&device) == 0) t.device = device;
}

tprof::Thread* recording_driver() {
  if (!tprof::opt_in::driver()) return nullptr;
  tprof::Thread* t = tprof::recording_thread();
  if (t != nullptr) ask_device(*t);
  return t;
}

bool is_host(CUmemorytype type) {
  return type == CU_MEMORYTYPE_HOST;
}

// Where one side of a box lies; null: in an array.
const void* side(CUmemorytype type, const void* host, CUdeviceptr device) {
  return is_host(type) ? host : type == CU_MEMORYTYPE_ARRAY ? nullptr : at(device);
}

// Boxes of the driver are in bytes whatever takes part. A side that is unified is told by its
// pointer.
template <typename Box>
cudaMemcpyKind kind_of(const Box& b) {
  if (b.dstMemoryType == CU_MEMORYTYPE_UNIFIED || b.srcMemoryType == CU_MEMORYTYPE_UNIFIED) {
    return cudaMemcpyDefault;
  }
  if (is_host(b.srcMemoryType)) {
    return is_host(b.dstMemoryType) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  }
  return is_host(b.dstMemoryType) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

template <typename Box>
CopyArgs box_copy(const Box* b, CUstream stream, bool sync) {
  if (b == nullptr) return {nullptr, nullptr, 0, cudaMemcpyDefault, stream, sync};
  std::size_t bytes = b->WidthInBytes * b->Height;
  if constexpr (requires { b->Depth; }) bytes *= b->Depth;
  return {.dst = side(b->dstMemoryType, b->dstHost, b->dstDevice),
          .src = side(b->srcMemoryType, b->srcHost, b->srcDevice),
          .bytes = bytes,
          .kind = kind_of(*b),
          .stream = stream,
          .sync = sync};
}

}  // namespace

#define WRAPPER(meant, function, prototype, parameters, arguments, reading)                 \
  TPROF_EXPORT CUresult function parameters {                                               \
    TPROF_REAL(function, decltype(&::prototype), CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND) \
    tprof::Thread* t = recording_driver();                                                  \
    if (t == nullptr) return real arguments;                                                \
    CopyArgs a = TPROF_UNPAREN reading;                                                     \
    a.stream = meant(a.stream);                                                             \
    return tprof::copy_call<Fn::function>(*t, a, [&] { return real arguments; });           \
  }

// cuda.h names the twins only by a macro: they are declared with the plain functions' types.
#define X(function, twin, name, since, parameters, arguments, reading)       \
  extern "C" decltype(::function) twin;                                      \
  WRAPPER(tprof::legacy, function, function, parameters, arguments, reading) \
  WRAPPER(tprof::per_thread, twin, function, parameters, arguments, reading)
TPROF_CUDA_COPY(X)
#undef X

// As functions of other names, since no one header has all their prototypes.
#define BATCH(meant, function, parameters, arguments, reading)                               \
  namespace tprof {                                                                          \
  TPROF_EXPORT CUresult any_##function parameters __asm__(#function);                        \
  TPROF_EXPORT CUresult any_##function parameters {                                          \
    using Type = CUresult(*) parameters;                                                     \
    TPROF_REAL_OF(function, any_##function, Type, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND) \
    Thread* t = recording_driver();                                                          \
    if (t == nullptr) return real arguments;                                                 \
    const auto call = [&] { return static_cast<cudaError_t>(real arguments); };              \
    Batch batch = TPROF_UNPAREN reading;                                                     \
    batch.stream = meant(batch.stream);                                                      \
    return static_cast<CUresult>(batch_call(*t, Fn::function, batch, call));                 \
  }                                                                                          \
  }
#define X(function, twin, name, since, until, parameters, arguments, reading) \
  BATCH(legacy, function, parameters, arguments, reading)                     \
  BATCH(per_thread, twin, parameters, arguments, reading)
TPROF_CUDA_BATCH(X)
#undef X
