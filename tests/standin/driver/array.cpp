// Arrays and their descriptors. A cudaArray_t is a CUarray.
#include "engine/array.h"

#include "driver/entry.h"
#include "engine/device.h"

using namespace standin;

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

// Knows only the formats that programs here make arrays of.
bool describe(CUarray_format format, unsigned channels, cudaChannelFormatDesc* d) {
  const auto of = [&](int bits, cudaChannelFormatKind kind) {
    const auto channel = [&](unsigned n) { return n < channels ? bits : 0; };
    *d = {channel(0), channel(1), channel(2), channel(3), kind};
    return channels == 1 || channels == 2 || channels == 4;
  };
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      return of(8, cudaChannelFormatKindUnsigned);
    case CU_AD_FORMAT_HALF:
      return of(16, cudaChannelFormatKindFloat);
    case CU_AD_FORMAT_FLOAT:
      return of(32, cudaChannelFormatKindFloat);
    default:
      return false;
  }
}

}  // namespace

extern "C" {

CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  cudaChannelFormatDesc format{};
  if (!out || !d || d->Width == 0 || !describe(d->Format, d->NumChannels, &format)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = reinterpret_cast<CUarray>(
      make_array(format, {d->Width, d->Height, d->Depth}, d->Flags, current_device()));
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  if (!d) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR flat{d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
  return cuArray3DCreate_v2(out, &flat);
}
CUresult cuArrayDestroy(CUarray array) {
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  free_array(reinterpret_cast<cudaArray_t>(array));
  return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  if (!out || !handle) return CUDA_ERROR_INVALID_VALUE;
  const auto& array = *reinterpret_cast<const cudaArray*>(handle);
  *out = {array.extent.width,      array.extent.height,       array.extent.depth,
          format_of(array.format), channels_of(array.format), array.flags};
  return CUDA_SUCCESS;
}

}  // extern "C"
