// The wrappers that follow the device of a thread and the kind of memory of an address. They count
// no copies and start nothing. With TPROF_MEMORY=1 allocations are counted, including those of the
// functions in api/cudart.h and api/cuda.h that only allocate and free; without it those only pass
// calls through. A runtime call and the driver call inside it are one.
#include <cstdint>
#include <cstring>

#include "interpose/calls/host_memory.h"
#include "interpose/device/pairs.h"
#include "interpose/hook/wrapper.h"
#include "interpose/real/driver.h"
#include "interpose/record/allocations.h"
#include "interpose/record/graphs.h"
#include "interpose/session/config.h"

// Each row of the API tables that allocates or frees names its step here.
namespace tprof::allocations {

// The kind of memory that a call allocates.
enum class Where : std::uint8_t { device, pinned, managed };

inline std::uint8_t place_of(Where where, const void* at) {
  if (where == Where::pinned) return kPinnedMemory;
  if (where == Where::managed) return kManagedMemory;
  // A pool's memory is on the pool's device.
  return place_of_device(driver::device_of(at, driver::current_device(t_thread.device)));
}

// True if the stream captures: the memory then belongs to the graph, and exists while that runs.
inline bool captures(cudaStream_t stream) {
  return graphs::captured_into(stream) != nullptr;
}

// `at` is where the address is when the call has returned: void** or CUdeviceptr*.
struct Allocates {
  const void* at;
  std::uint64_t bytes;
  Where where = Where::device;
  bool counts = true;
  void after(bool accepted) const {
    if (!accepted || !counts || at == nullptr) return;
    const void* memory = nullptr;
    std::memcpy(&memory, at, sizeof memory);
    allocated(key_of(memory), bytes, place_of(where, memory));
  }
};
inline Allocates allocates_on(cudaStream_t stream, const void* at, std::uint64_t bytes) {
  return {at, bytes, Where::device, !captures(stream)};
}

struct Frees {
  std::uint64_t key;
  Taken taken{};
  void before() { taken = take(key); }
  void after(bool accepted) const {
    if (!accepted) put_back(taken);
  }
};
// A free on a stream counts at once, since the program must not use the memory any more.
inline Frees frees_on(cudaStream_t stream, std::uint64_t key) {
  return {captures(stream) ? 0 : key};
}

// Physical memory counts until its first release by any holder of a handle.
struct Creates {
  const CUmemGenericAllocationHandle* handle;
  std::uint64_t bytes;
  const CUmemAllocationProp* wanted;
  void after(bool accepted) const {
    if (!accepted || handle == nullptr || wanted == nullptr) return;
    const bool device = wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    allocated(key_of_handle(*handle), bytes,
              device ? place_of_device(wanted->location.id) : kPinnedMemory);
  }
};

// The wrapper's body. Nested allocation calls are part of this one, as the runtime's calls of the
// driver. Allocations within other calls are counted, as NCCL's buffers within ncclCommInitRank.
template <typename GetStep, typename F>
[[gnu::always_inline]] inline auto allocation_call(GetStep&& step, F&& real) {
  Thread& t = t_thread;
  if (!opt_in::memory() || t.allocating) [[likely]]
    return real();
  auto call = step();
  if constexpr (requires { call.before(); }) call.before();
  t.allocating = true;
  const auto result = real();
  t.allocating = false;
  call.after(static_cast<int>(result) == 0);
  return result;
}

}  // namespace tprof::allocations

#define TPROF_ALLOCATION(stream_meant, arguments, step)                            \
  tprof::allocations::allocation_call(TPROF_STEP(allocations, stream_meant, step), \
                                      [&] { return real arguments; })

using tprof::HostMemory;
namespace memory = tprof::memory;

#define RUNTIME(function, parameters, ...) \
  TPROF_TYPED(cudaError_t, function, parameters, __VA_ARGS__)

RUNTIME(cudaSetDevice, (int device), {
  const cudaError_t result = real(device);
  if (result == cudaSuccess) tprof::t_thread.device = device;
  return result;
})

#define X(function, parameters, arguments, step, pointer, kind)                           \
  RUNTIME(function, parameters, {                                                         \
    const cudaError_t result = TPROF_ALLOCATION(legacy, arguments, (TPROF_UNPAREN step)); \
    if (result == cudaSuccess) memory::add(pointer, size, HostMemory::kind);              \
    return result;                                                                        \
  })
X(cudaHostAlloc, (void** pointer, size_t size, unsigned int flags), (pointer, size, flags),
  (Allocates{pointer, size, Where::pinned}), *pointer, pinned)
X(cudaMallocHost, (void** pointer, size_t size), (pointer, size),
  (Allocates{pointer, size, Where::pinned}), *pointer, pinned)
X(cudaMallocManaged, (void** pointer, size_t size, unsigned int flags), (pointer, size, flags),
  (Allocates{pointer, size, Where::managed}), *pointer, managed)
X(cudaHostRegister, (void* pointer, size_t size, unsigned int flags), (pointer, size, flags),
  (Allocates{&pointer, size, Where::pinned}), pointer, pinned)
#undef X

// Removes the entry before the address can be in use again.
#define X(function)                                                       \
  RUNTIME(function, (void* pointer), {                                    \
    memory::remove(pointer);                                              \
    return TPROF_ALLOCATION(legacy, (pointer), (Frees{key_of(pointer)})); \
  })
X(cudaFreeHost)
X(cudaHostUnregister)
X(cudaFree)
#undef X

// Unpins all memory pinned for this device; for other devices' the driver is asked.
RUNTIME(cudaDeviceReset, (), {
  tprof::device::ContextsGo contexts(-1, nullptr, true);
  const cudaError_t result = real();
  if (result == cudaSuccess) {
    memory::remove_all();
    contexts.gone();
  }
  return result;
})

#define WRAPPER(stream_meant, function, parameters, arguments, step) \
  RUNTIME(function, parameters, return TPROF_ALLOCATION(stream_meant, arguments, step);)
TPROF_CUDART_ALLOCATION(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER
#undef RUNTIME

#define WRAPPER(stream_meant, function, name, parameters, arguments, step) \
  TPROF_ANY(CUresult, function, parameters, return TPROF_ALLOCATION(stream_meant, arguments, step);)
TPROF_CUDA_ALLOCATION(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER
