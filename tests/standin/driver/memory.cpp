// Allocation, and what a pointer is.
#include "engine/memory.h"

#include <algorithm>
#include <cstring>

#include "driver/entry.h"
#include "engine/device.h"

using namespace standin;

namespace {

CUresult give(void** out, size_t size, cudaMemoryType type) {
  if (!has_context(current_device())) return CUDA_ERROR_INVALID_CONTEXT;
  *out = allocate(size, type, current_device());
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
CUresult cuMemGetInfo(size_t* free, size_t* total) {
  *total = device_memory_total();
  *free = *total - device_memory_used(current_device());
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto a = find_allocation(pointer(address));
  return a ? attribute_of(*a, attribute, address, data) : CUDA_ERROR_INVALID_VALUE;
}
// Unlike the single form, for a pointer that CUDA does not know all answers are 0.
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
