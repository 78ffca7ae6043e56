// Allocation and pointer attributes.
#include "engine/memory.h"

#include <algorithm>
#include <cstring>

#include "driver/entry.h"
#include "engine/blocks.h"
#include "engine/device.h"

using namespace standin;

namespace {

CUresult give(void** out, size_t size, cudaMemoryType type, size_t asked = SIZE_MAX) {
  if (!has_context(current_device())) return CUDA_ERROR_INVALID_CONTEXT;
  *out = allocate(size, type, current_device(), asked);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

template <class T>
CUresult answer(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult attribute_of(const Allocation& a, CUpointer_attribute attribute, CUdeviceptr address,
                      void* data) {
  const bool host = a.type == cudaMemoryTypeHost;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return answer<unsigned>(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return answer<unsigned>(data, a.type == cudaMemoryTypeManaged);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return answer(data, std::max(a.device, 0));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return answer(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (a.type == cudaMemoryTypeDevice) return CUDA_ERROR_INVALID_VALUE;
      return answer(data, address);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return answer(data, a.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return answer(data, a.size);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

extern "C" {

CUresult cuMemAlloc(CUdeviceptr* out, size_t size) {
  void* base = nullptr;
  const CUresult result = give(&base, size, cudaMemoryTypeDevice);
  *out = reinterpret_cast<CUdeviceptr>(base);
  return result;
}
CUresult cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned) {
  void* base = nullptr;
  const CUresult result = give(&base, size, cudaMemoryTypeManaged);
  *out = reinterpret_cast<CUdeviceptr>(base);
  return result;
}
CUresult cuMemHostAlloc(void** out, size_t size, unsigned) {
  return give(out, size, cudaMemoryTypeHost);
}
CUresult cuMemFree(CUdeviceptr address) {
  return release(pointer(address), cudaMemoryTypeDevice) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemFreeHost(void* base) {
  return release(base, cudaMemoryTypeHost) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemAllocPitch(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned) {
  *pitch = (width + 511) / 512 * 512;
  void* base = nullptr;
  const CUresult result = give(&base, *pitch * height, cudaMemoryTypeDevice, width * height);
  *out = reinterpret_cast<CUdeviceptr>(base);
  return result;
}
CUresult cuMemAllocHost(void** out, size_t size) {
  return give(out, size, cudaMemoryTypeHost);
}
CUresult cuMemHostRegister(void* base, size_t size, unsigned) {
  return base && size && register_host(base, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemHostUnregister(void* base) {
  return unregister_host(base) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

// Stream-ordered: memory is allocated at once, and freed when the stream reaches the free.
CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream) {
  return with_stream(stream, [&](CUstream_st& s) {
    void* base = allocate(size, cudaMemoryTypeDevice, s.device, s.capture ? 0 : SIZE_MAX);
    *out = reinterpret_cast<CUdeviceptr>(base);
    return base || size == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool, CUstream stream) {
  return cuMemAllocAsync(out, size, stream);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return with_stream(stream, [&](CUstream_st& s) {
    void* base = pointer(address);
    if (!s.capture) let_go(base);
    submit(s, {.run =
                   [base] {
                     return release(base, cudaMemoryTypeDevice) ? cudaSuccess
                                                                : cudaErrorInvalidValue;
                   },
               .type = cudaGraphNodeTypeMemFree});
    return cudaSuccess;
  });
}

// Memory that is mapped by hand.
CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *granularity = 2 << 20;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t, CUdeviceptr,
                             unsigned long long) {
  *out = reinterpret_cast<CUdeviceptr>(reserve_addresses(size));
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  return free_addresses(pointer(address), size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* wanted, unsigned long long) {
  const bool device = wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  *handle = create_block(size, device ? wanted->location.id : -1);
  return *handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return release_block(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  *handle = retain_block(address);
  return *handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  return map_block(pointer(address), size, offset, handle) ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  return unmap_blocks(pointer(address), size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  *total = device_memory_total();
  *free = *total - device_memory_used(current_device());
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto a = find_allocation(pointer(address));
  return a ? attribute_of(*a, attribute, address, data) : CUDA_ERROR_INVALID_VALUE;
}
// Unlike the single form, answers 0 to everything about a pointer that CUDA does not know.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  const auto a = find_allocation(pointer(address));
  for (unsigned i = 0; i < count; ++i) {
    if (!a) {
      answer<unsigned>(data[i], 0);
    } else if (attribute_of(*a, attributes[i], address, data[i]) != CUDA_SUCCESS) {
      answer<CUdeviceptr>(data[i], 0);
    }
  }
  return CUDA_SUCCESS;
}

}  // extern "C"
