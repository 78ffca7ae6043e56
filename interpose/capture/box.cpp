#include "interpose/capture/box.h"

#include "interpose/driver/memory.h"
#include "interpose/format/coverage.h"
#include "interpose/session/coverage.h"
#include "interpose/session/session.h"

namespace tprof {
namespace {

void note_unsized(unsigned format) {
  char text[] = "CUDA array of format 0x00";
  const auto digit = [](unsigned n) { return static_cast<char>(n < 10 ? '0' + n : 'a' + n - 10); };
  text[sizeof text - 3] = digit(format >> 4 & 15);
  text[sizeof text - 2] = digit(format & 15);
  coverage::note(session::mapping().head(), Note::unsized_array, text);
}

}  // namespace

std::size_t box_bytes(const cudaExtent& extent, const void* dst_array, const void* src_array) {
  // Between two arrays the elements are of equal size.
  const void* array = dst_array != nullptr ? dst_array : src_array;
  const std::size_t elements = extent.width * extent.height * extent.depth;
  if (array == nullptr) return elements;
  unsigned format = 0;
  const std::size_t bytes = driver::array_element_bytes(array, format);
  if (bytes == 0) note_unsized(format);
  return elements * bytes;
}

CopyArgs box_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync) {
  if (p == nullptr) return {nullptr, nullptr, 0, cudaMemcpyDefault, stream, sync};
  return {.dst = p->dstArray == nullptr ? p->dstPtr.ptr : nullptr,
          .src = p->srcArray == nullptr ? p->srcPtr.ptr : nullptr,
          .bytes = box_bytes(p->extent, p->dstArray, p->srcArray),
          .kind = p->kind,
          .stream = stream,
          .sync = sync};
}

CopyArgs box_copy(const cudaMemcpy3DPeerParms* p, cudaStream_t stream, bool sync) {
  const std::size_t bytes = p == nullptr ? 0 : box_bytes(p->extent, p->dstArray, p->srcArray);
  return {nullptr, nullptr, bytes, cudaMemcpyDeviceToDevice, stream, sync};
}

}  // namespace tprof
