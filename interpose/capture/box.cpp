#include "interpose/capture/box.h"

#include <atomic>

#include "interpose/driver/function.h"
#include "interpose/format/coverage.h"
#include "interpose/session/coverage.h"
#include "interpose/session/session.h"

namespace tprof {
namespace {

// CUDA_ARRAY3D_DESCRIPTOR of cuda.h.
struct Descriptor {
  std::size_t width, height, depth;
  unsigned format;
  unsigned channels;
  unsigned flags;
};

// CUarray_format of cuda.h: bytes of an element, or of each of its channels. The formats left out
// are compressed in blocks, or have planes of different sizes.
struct Format {
  unsigned number;
  std::uint8_t bytes;
  bool each_channel;
};
constexpr Format kFormats[] = {
    {0x01, 1, true},  {0x02, 2, true},  {0x03, 4, true},   // UNSIGNED_INT8, 16, 32
    {0x08, 1, true},  {0x09, 2, true},  {0x0a, 4, true},   // SIGNED_INT8, 16, 32
    {0x10, 2, true},  {0x20, 4, true},                     // HALF, FLOAT
    {0xc0, 1, false}, {0xc1, 2, false}, {0xc2, 4, false},  // UNORM_INT8X1, X2, X4
    {0xc3, 2, false}, {0xc4, 4, false}, {0xc5, 8, false},  // UNORM_INT16X1, X2, X4
    {0xc6, 1, false}, {0xc7, 2, false}, {0xc8, 4, false},  // SNORM_INT8X1, X2, X4
    {0xc9, 2, false}, {0xca, 4, false}, {0xcb, 8, false},  // SNORM_INT16X1, X2, X4
};

bool describe(const void* array, Descriptor& d) {
  static constinit resolve::DriverFunction<int(Descriptor*, const void*)> query(
      "cuArray3DGetDescriptor_v2");
  auto* ask = query.get();
  return ask != nullptr && ask(&d, array) == 0;
}

void note_unsized(unsigned format) {
  char text[] = "CUDA array of format 0x00";
  const auto digit = [](unsigned n) { return static_cast<char>(n < 10 ? '0' + n : 'a' + n - 10); };
  text[sizeof text - 3] = digit(format >> 4 & 15);
  text[sizeof text - 2] = digit(format & 15);
  coverage::note(session::mapping().head(), Note::unsized_array, text);
}

}  // namespace

std::size_t array_element_bytes(const void* array) {
  Descriptor d{};
  if (describe(array, d)) {
    for (const Format& f : kFormats) {
      if (f.number == d.format) return std::size_t{f.bytes} * (f.each_channel ? d.channels : 1);
    }
  }
  note_unsized(d.format);
  return 0;
}

std::size_t box_bytes(const cudaExtent& extent, const void* dst_array, const void* src_array) {
  // Between two arrays the elements are of equal size.
  const void* array = dst_array != nullptr ? dst_array : src_array;
  const std::size_t elements = extent.width * extent.height * extent.depth;
  return array == nullptr ? elements : elements * array_element_bytes(array);
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
