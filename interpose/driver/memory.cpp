#include "interpose/driver/memory.h"

#include <cuda.h>

#include <cstdint>

#include "interpose/driver/function.h"

namespace tprof::driver {

using resolve::DriverFunction;

namespace {

struct Kind {
  bool device = false;
  bool managed = false;
};

Kind kind_of(const void* address) {
  if (address == nullptr) return {true, false};
  static constinit DriverFunction<int(unsigned, const CUpointer_attribute*, void**, std::uintptr_t)>
      query("cuPointerGetAttributes");
  auto* ask = query.get();
  if (ask == nullptr) return {};
  static constexpr CUpointer_attribute kAttributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                        CU_POINTER_ATTRIBUTE_IS_MANAGED};
  unsigned type = 0;
  unsigned managed = 0;
  void* answers[] = {&type, &managed};
  // Memory that CUDA does not know is the program's own, host memory: both answers are 0.
  if (ask(2, kAttributes, answers, reinterpret_cast<std::uintptr_t>(address)) != 0) return {};
  return {type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY,
          managed != 0 || type == CU_MEMORYTYPE_UNIFIED};
}

}  // namespace

int current_device(int otherwise) {
  static constinit DriverFunction<int(int*)> query("cuCtxGetDevice");
  auto* ask = query.get();
  int device = 0;
  return ask != nullptr && ask(&device) == 0 ? device : otherwise;
}

Bucket direction(const void* dst, const void* src) {
  const auto to = kind_of(dst);
  const auto from = kind_of(src);
  if (to.managed || from.managed) return Bucket::MANAGED;
  if (to.device) return from.device ? Bucket::D2D : Bucket::H2D;
  return from.device ? Bucket::D2H : Bucket::H2H;
}

std::size_t array_element_bytes(const void* array, unsigned& format) {
  static constinit DriverFunction<int(CUDA_ARRAY3D_DESCRIPTOR*, const void*)> query(
      "cuArray3DGetDescriptor_v2");
  auto* ask = query.get();
  CUDA_ARRAY3D_DESCRIPTOR d{};
  if (ask == nullptr || ask(&d, array) != 0) return 0;
  format = d.Format;
  // The others are normalised, compressed in blocks, or have planes of different sizes.
  switch (d.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return d.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2 * std::size_t{d.NumChannels};
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4 * std::size_t{d.NumChannels};
    default:
      return 0;
  }
}

}  // namespace tprof::driver
