// Arrays, and the copies into and out of them: offsets and widths are in bytes here.
#include "engine/array.h"

#include "cudart/entry.h"
#include "engine/copy.h"
#include "engine/device.h"

using namespace standin;

namespace {

char* at(cudaArray_const_t array, size_t x, size_t y) {
  return array->base + y * array->pitch() + x;
}

cudaError_t rectangle(const char* function, char* dst, size_t dst_pitch, const char* src,
                      size_t src_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                      cudaStream_t stream, Wait wait) {
  const Region region{.dst = dst,
                      .src = src,
                      .width = width,
                      .height = height,
                      .dst_pitch = dst_pitch,
                      .src_pitch = src_pitch};
  return done(copy(function, region, kind, stream, wait));
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc3DArray(cudaArray_t* out, const cudaChannelFormatDesc* format,
                              cudaExtent extent, unsigned flags) {
  if (!out || !format || extent.width == 0) return done(cudaErrorInvalidValue);
  use_context(current_device());
  *out = make_array(*format, extent, flags, current_device());
  return done(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocArray(cudaArray_t* out, const cudaChannelFormatDesc* format, size_t width,
                            size_t height, unsigned flags) {
  return cudaMalloc3DArray(out, format, {width, height, 0}, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  if (array) free_array(array);
  return cudaSuccess;
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
  if (!array) return done(cudaErrorInvalidResourceHandle);
  if (format) *format = array->format;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void* src, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  return rectangle("cudaMemcpy2DToArray", at(dst, x, y), dst->pitch(),
                   static_cast<const char*>(src), pitch, width, height, kind, nullptr, Wait::kYes);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void* src,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  return rectangle("cudaMemcpy2DToArrayAsync", at(dst, x, y), dst->pitch(),
                   static_cast<const char*>(src), pitch, width, height, kind, stream, Wait::kNo);
}
cudaError_t cudaMemcpy2DFromArray(void* dst, size_t pitch, cudaArray_const_t src, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  return rectangle("cudaMemcpy2DFromArray", static_cast<char*>(dst), pitch, at(src, x, y),
                   src->pitch(), width, height, kind, nullptr, Wait::kYes);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* dst, size_t pitch, cudaArray_const_t src, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return rectangle("cudaMemcpy2DFromArrayAsync", static_cast<char*>(dst), pitch, at(src, x, y),
                   src->pitch(), width, height, kind, stream, Wait::kNo);
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t dst_x, size_t dst_y,
                                     cudaArray_const_t src, size_t src_x, size_t src_y,
                                     size_t width, size_t height, cudaMemcpyKind kind) {
  return rectangle("cudaMemcpy2DArrayToArray", at(dst, dst_x, dst_y), dst->pitch(),
                   at(src, src_x, src_y), src->pitch(), width, height, kind, nullptr, Wait::kYes);
}

// One-dimensional copies, which run on past the ends of rows.
cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void* src, size_t count,
                              cudaMemcpyKind kind) {
  return done(copy("cudaMemcpyToArray", {at(dst, x, y), src, count}, kind, nullptr, Wait::kYes));
}
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void* src,
                                   size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return done(copy("cudaMemcpyToArrayAsync", {at(dst, x, y), src, count}, kind, stream, Wait::kNo));
}
cudaError_t cudaMemcpyFromArray(void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count,
                                cudaMemcpyKind kind) {
  return done(copy("cudaMemcpyFromArray", {dst, at(src, x, y), count}, kind, nullptr, Wait::kYes));
}
cudaError_t cudaMemcpyFromArrayAsync(void* dst, cudaArray_const_t src, size_t x, size_t y,
                                     size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return done(
      copy("cudaMemcpyFromArrayAsync", {dst, at(src, x, y), count}, kind, stream, Wait::kNo));
}
cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t dst_x, size_t dst_y,
                                   cudaArray_const_t src, size_t src_x, size_t src_y, size_t count,
                                   cudaMemcpyKind kind) {
  return done(copy("cudaMemcpyArrayToArray", {at(dst, dst_x, dst_y), at(src, src_x, src_y), count},
                   kind, nullptr, Wait::kYes));
}

}  // extern "C"
