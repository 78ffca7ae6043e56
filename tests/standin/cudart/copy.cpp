// The runtime's copies and fills, each expressed as a Region.
#include "engine/copy.h"

#include "cudart/box.h"
#include "cudart/entry.h"
#include "engine/device.h"

using namespace standin;

namespace {

Region rows(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
            size_t height) {
  return {.dst = dst,
          .src = src,
          .width = width,
          .height = height,
          .dst_pitch = dst_pitch,
          .src_pitch = src_pitch};
}

// One side of a box. CUDA arrays are not supported here.
struct Side {
  char* at;
  size_t pitch, slice;
};

Side side(const cudaPitchedPtr& p, const cudaPos& position) {
  const size_t slice = p.pitch * p.ysize;
  return {static_cast<char*>(p.ptr) + position.z * slice + position.y * p.pitch + position.x,
          p.pitch, slice};
}

unsigned byte(int value) {
  return static_cast<unsigned char>(value);
}

}  // namespace

namespace standin {

Region box_region(const cudaMemcpy3DParms& p) {
  const Side dst = side(p.dstPtr, p.dstPos), src = side(p.srcPtr, p.srcPos);
  return {.dst = dst.at,
          .src = src.at,
          .width = p.extent.width,
          .height = p.extent.height,
          .depth = p.extent.depth,
          .dst_pitch = dst.pitch,
          .src_pitch = src.pitch,
          .dst_slice = dst.slice,
          .src_slice = src.slice};
}

}  // namespace standin

extern "C" {

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return done(copy("cudaMemcpy", {dst, src, count}, kind, nullptr, Wait::kYes));
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return done(copy("cudaMemcpyAsync", {dst, src, count}, kind, stream, Wait::kNo));
}
cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return done(copy("cudaMemcpy2D", rows(dst, dpitch, src, spitch, width, height), kind, nullptr,
                   Wait::kYes));
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return done(copy("cudaMemcpy2DAsync", rows(dst, dpitch, src, spitch, width, height), kind, stream,
                   Wait::kNo));
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  return done(copy("cudaMemcpy3D", box_region(*p), p->kind, nullptr, Wait::kYes));
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return done(copy("cudaMemcpy3DAsync", box_region(*p), p->kind, stream, Wait::kNo));
}
cudaError_t cudaMemcpyPeer(void* dst, int, const void* src, int, size_t count) {
  return done(
      copy("cudaMemcpyPeer", {dst, src, count}, cudaMemcpyDeviceToDevice, nullptr, Wait::kYes));
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int, const void* src, int, size_t count,
                                cudaStream_t stream) {
  return done(
      copy("cudaMemcpyPeerAsync", {dst, src, count}, cudaMemcpyDeviceToDevice, stream, Wait::kNo));
}
// Ignores the attributes: they say where the memory is, and the pointers tell that as well.
cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes*, size_t*, size_t,
                                 cudaStream_t stream) {
  if (!dsts || !srcs || !sizes || count == 0) return done(cudaErrorInvalidValue);
  std::vector<Region> regions;
  for (size_t i = 0; i < count; ++i) {
    regions.push_back({dsts[i], srcs[i], sizes[i]});
  }
  return done(copy_batch("cudaMemcpyBatchAsync", regions, stream));
}

cudaError_t cudaMemset(void* dst, int value, size_t count) {
  return done(fill({dst, nullptr, count}, byte(value), 1, nullptr, Wait::kYes));
}
cudaError_t cudaMemsetAsync(void* dst, int value, size_t count, cudaStream_t stream) {
  return done(fill({dst, nullptr, count}, byte(value), 1, stream, Wait::kNo));
}

}  // extern "C"
