// Allocation, registration and pointer attributes.
#include "engine/memory.h"
#include "engine/capture.h"

#include <algorithm>

#include "cudart/entry.h"
#include "engine/device.h"

using namespace standin;

namespace {

cudaError_t give(void** out, size_t size, cudaMemoryType type, size_t asked = SIZE_MAX) {
  if (!out) return done(cudaErrorInvalidValue);
  if (const cudaError_t error = check_not_capturing(nullptr)) return done(error);
  use_context(current_device());
  *out = nullptr;
  if (size == 0) return cudaSuccess;
  *out = allocate(size, type, current_device(), asked);
  return done(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t take(void* pointer, cudaMemoryType type) {
  if (!pointer) return cudaSuccess;
  const auto allocation = find_allocation(pointer);
  if (!allocation || allocation->base != pointer) return done(cudaErrorInvalidValue);
  if (const cudaError_t error = check_not_capturing(nullptr)) return done(error);
  // As on a GPU, nothing is freed under work that may still use it.
  for (const Mark& mark : tails_of_device(std::max(allocation->device, 0))) mark->wait();
  return done(release(pointer, type) ? cudaSuccess : cudaErrorInvalidValue);
}

size_t pitch_of(size_t width) {
  return (width + 511) / 512 * 512;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** out, size_t size) {
  return give(out, size, cudaMemoryTypeDevice);
}
cudaError_t cudaMallocManaged(void** out, size_t size, unsigned) {
  return give(out, size, cudaMemoryTypeManaged);
}
cudaError_t cudaMallocHost(void** out, size_t size) {
  return give(out, size, cudaMemoryTypeHost);
}
cudaError_t cudaHostAlloc(void** out, size_t size, unsigned) {
  return give(out, size, cudaMemoryTypeHost);
}
cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  *pitch = pitch_of(width);
  return give(out, *pitch * height, cudaMemoryTypeDevice, width * height);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* out, cudaExtent extent) {
  *out = {nullptr, pitch_of(extent.width), extent.width, extent.height};
  return give(&out->ptr, out->pitch * extent.height * extent.depth, cudaMemoryTypeDevice,
              extent.width * extent.height * extent.depth);
}
cudaError_t cudaFree(void* pointer) {
  return take(pointer, cudaMemoryTypeDevice);
}
cudaError_t cudaFreeHost(void* pointer) {
  return take(pointer, cudaMemoryTypeHost);
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned) {
  if (!pointer || size == 0) return done(cudaErrorInvalidValue);
  use_context(current_device());
  return done(register_host(pointer, size) ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered);
}
cudaError_t cudaHostUnregister(void* pointer) {
  return done(unregister_host(pointer) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

// Stream-ordered: memory is allocated at once, and freed when the stream reaches the free.
cudaError_t cudaMallocAsync(void** out, size_t size, cudaStream_t stream) {
  return with_stream(stream, [&](CUstream_st& s) {
    // A captured allocation belongs to the graph, so the books do not count it.
    *out = allocate(size, cudaMemoryTypeDevice, s.device, s.capture ? 0 : SIZE_MAX);
    use_context(s.device);
    return *out || size == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
cudaError_t cudaMallocFromPoolAsync(void** out, size_t size, cudaMemPool_t, cudaStream_t stream) {
  return cudaMallocAsync(out, size, stream);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return with_stream(stream, [&](CUstream_st& s) {
    if (!s.capture) let_go(pointer);
    submit(s, {.run =
                   [pointer] {
                     return release(pointer, cudaMemoryTypeDevice) ? cudaSuccess
                                                                   : cudaErrorInvalidValue;
                   },
               .type = cudaGraphNodeTypeMemFree});
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  use_context(current_device());
  *total = device_memory_total();
  *free = *total - device_memory_used(current_device());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (!attributes) return done(cudaErrorInvalidValue);
  use_context(current_device());
  const auto a = find_allocation(pointer);
  *attributes = {};
  if (!a) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  attributes->type = a->type;
  attributes->device = std::max(a->device, 0);
  attributes->devicePointer = const_cast<void*>(pointer);
  if (a->type != cudaMemoryTypeDevice) attributes->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}

// Each device has only its default pool, which hands out memory and keeps no state.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  static char pools[64];
  *pool = reinterpret_cast<cudaMemPool_t>(&pools[device]);
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  if (attribute <= cudaMemPoolReuseAllowInternalDependencies) {
    *static_cast<int*>(value) = 1;
  } else {
    *static_cast<unsigned long long*>(value) = 0;
  }
  return cudaSuccess;
}

}  // extern "C"
