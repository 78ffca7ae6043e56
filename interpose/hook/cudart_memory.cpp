// The wrappers that tell us which device a thread uses and what kind of memory an address is.
// They count no copies and start nothing; with TPROF_MEMORY=1 the memory is counted.
#include "interpose/calls/memory.h"
#include "interpose/device/contexts.h"
#include "interpose/hook/wrapper.h"
#include "interpose/record/allocation_calls.h"

using tprof::HostMemory;
namespace memory = tprof::memory;

TPROF_EXPORT cudaError_t cudaSetDevice(int device) {
  TPROF_REAL_CUDART(cudaSetDevice)
  const cudaError_t result = real(device);
  if (result == cudaSuccess) tprof::t_thread.device = device;
  return result;
}

#define X(function, parameters, arguments, bytes, kind)                                  \
  TPROF_CUDART_WRAPPER(                                                                  \
      function, parameters,                                                              \
      const cudaError_t result =                                                         \
          TPROF_ALLOCATION(legacy, arguments, (Allocates{pointer, bytes, Where::kind})); \
      if (result == cudaSuccess) memory::add(*pointer, bytes, HostMemory::kind); return result;)
X(cudaHostAlloc, (void** pointer, size_t size, unsigned int flags), (pointer, size, flags), size,
  pinned)
X(cudaMallocHost, (void** pointer, size_t size), (pointer, size), size, pinned)
X(cudaMallocManaged, (void** pointer, size_t size, unsigned int flags), (pointer, size, flags),
  size, managed)
#undef X

TPROF_EXPORT cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  TPROF_REAL_CUDART(cudaHostRegister)
  const cudaError_t result =
      TPROF_ALLOCATION(legacy, (pointer, size, flags), (Pins{pointer, size}));
  if (result == cudaSuccess) memory::add(pointer, size, HostMemory::pinned);
  return result;
}

// Leaves the table before the address can be given to someone else.
#define X(function)                                                       \
  TPROF_EXPORT cudaError_t function(void* pointer) {                      \
    TPROF_REAL_CUDART(function)                                           \
    memory::remove(pointer);                                              \
    return TPROF_ALLOCATION(legacy, (pointer), (Frees{key_of(pointer)})); \
  }
X(cudaFreeHost)
X(cudaHostUnregister)
X(cudaFree)
#undef X

// No memory that was pinned for this device stays pinned; about other devices' the driver is asked.
TPROF_EXPORT cudaError_t cudaDeviceReset() {
  TPROF_REAL_CUDART(cudaDeviceReset)
  tprof::device::ContextsGo contexts(-1, nullptr, true);
  const cudaError_t result = TPROF_ALLOCATION(legacy, (), (Resets{}));
  if (result == cudaSuccess) {
    memory::remove_all();
    contexts.gone();
  }
  return result;
}
