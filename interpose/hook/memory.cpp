// The wrappers that follow the device of a thread and the kind of memory of an address. They count
// no copies and start nothing. With TPROF_MEMORY=1 allocations are counted, including those of the
// functions in api/cudart.h and api/cuda.h that only allocate and free; without it those only pass
// calls through. A runtime call and the driver call inside it are one.
#include "interpose/device/contexts.h"
#include "interpose/hook/wrapper.h"
#include "interpose/record/allocation_calls.h"
#include "interpose/record/host_memory.h"

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
  (Pins{pointer, size}), pointer, pinned)
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
