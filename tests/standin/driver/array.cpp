// What the driver tells of an array. A cudaArray_t is a CUarray.
#include "engine/array.h"

#include "driver/entry.h"

namespace {

CUarray_format format_of(const cudaChannelFormatDesc& d) {
  switch (d.f) {
    case cudaChannelFormatKindSigned:
      return d.x == 8    ? CU_AD_FORMAT_SIGNED_INT8
             : d.x == 16 ? CU_AD_FORMAT_SIGNED_INT16
                         : CU_AD_FORMAT_SIGNED_INT32;
    case cudaChannelFormatKindUnsigned:
      return d.x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
             : d.x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                         : CU_AD_FORMAT_UNSIGNED_INT32;
    case cudaChannelFormatKindFloat:
      return d.x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    case cudaChannelFormatKindUnsignedNormalized8X4:
      return CU_AD_FORMAT_UNORM_INT8X4;
    case cudaChannelFormatKindSignedNormalized16X2:
      return CU_AD_FORMAT_SNORM_INT16X2;
    default:
      return CU_AD_FORMAT_NV12;
  }
}

unsigned channels_of(const cudaChannelFormatDesc& d) {
  return (d.x != 0 ? 1U : 0U) + (d.y != 0 ? 1U : 0U) + (d.z != 0 ? 1U : 0U) + (d.w != 0 ? 1U : 0U);
}

}  // namespace

extern "C" CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  if (!out || !handle) return CUDA_ERROR_INVALID_VALUE;
  const auto& array = *reinterpret_cast<const cudaArray*>(handle);
  *out = {array.extent.width,      array.extent.height,       array.extent.depth,
          format_of(array.format), channels_of(array.format), array.flags};
  return CUDA_SUCCESS;
}
