// Copies of two and three dimensions, between addresses and CUDA arrays of several formats.
#include "../per_thread_copies.h"
#include "copies.h"

namespace {

// The extents of arrays; an element has at most 16 bytes.
constexpr std::size_t kWidth = 64, kHeight = 16, kDepth = 4;

constexpr cudaChannelFormatDesc kFormats[] = {
    {8, 0, 0, 0, cudaChannelFormatKindUnsigned},  {16, 0, 0, 0, cudaChannelFormatKindFloat},
    {16, 16, 0, 0, cudaChannelFormatKindSigned},  {32, 0, 0, 0, cudaChannelFormatKindFloat},
    {32, 32, 0, 0, cudaChannelFormatKindSigned},  {8, 8, 8, 8, cudaChannelFormatKindUnsigned},
    {32, 32, 32, 32, cudaChannelFormatKindFloat},
};

std::size_t element_of(const cudaChannelFormatDesc& f) {
  return static_cast<std::size_t>(f.x + f.y + f.z + f.w) / 8;
}

// Gives a rank two other arrays of one format, now and then.
void renew(Dice& d, Rank& r) {
  synchronize(r);
  const cudaChannelFormatDesc format = d.one_of(kFormats);
  for (cudaArray_t& array : r.arrays) {
    if (array != nullptr) OK(cudaFreeArray(array));
    OK(cudaMalloc3DArray(&array, &format, {kWidth, kHeight, kDepth}, 0));
  }
  r.element = element_of(format);
}

void box_of_arrays(Dice& d, const Rank& r) {
  const Ends e = draw_ends(d, r);
  const std::size_t row = kWidth * r.element;
  cudaMemcpy3DParms p{};
  p.extent = {d.below(kWidth + 1), d.below(kHeight + 1), d.below(kDepth + 1)};
  const std::size_t way = d.below(3);
  char* other = e.device == nullptr ? e.to : e.device;
  const bool host = e.device == nullptr;
  if (way == 0) p.srcPtr = {other, row, kWidth, kHeight};
  if (way == 1) p.dstPtr = {other, row, kWidth, kHeight};
  if (way != 0) p.srcArray = r.arrays[0];
  if (way != 1) p.dstArray = r.arrays[1];
  p.kind = d.chance(30) || way == 2 ? cudaMemcpyDefault
           : !host                  ? cudaMemcpyDeviceToDevice
           : way == 0               ? cudaMemcpyHostToDevice
                                    : cudaMemcpyDeviceToHost;
  if (d.chance(50)) {
    EITHER(d, cudaMemcpy3D, cudaMemcpy3D_ptds, &p);
  } else {
    EITHER(d, cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz, &p, draw_stream(d, r));
  }
}

}  // namespace

void box_copy(Dice& d, const Rank& r) {
  const Ends e = draw_ends(d, r);
  constexpr std::size_t kPitch = 512, kRows = 32;
  const std::size_t width = d.size(kPitch), height = d.size(kRows), depth = d.size(8);
  cudaMemcpy3DParms p{};
  p.srcPtr = {e.from, kPitch, width, kRows};
  p.dstPtr = {e.to, kPitch, width, kRows};
  p.extent = {width, height, depth};
  p.kind = e.kind;
  cudaMemcpy3DPeerParms peer{};
  peer.srcPtr = {r.memory, kPitch, width, kRows};
  peer.dstPtr = {r.memory + kRegion, kPitch, width, kRows};
  peer.srcDevice = peer.dstDevice = r.device;
  peer.extent = p.extent;
  cudaStream_t stream = draw_stream(d, r);
  switch (d.below(8)) {
    case 0:
      EITHER(d, cudaMemcpy2D, cudaMemcpy2D_ptds, e.to, kPitch, e.from, kPitch, width, height,
             e.kind);
      return;
    case 1:
      EITHER(d, cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz, e.to, kPitch, e.from, kPitch, width,
             height, e.kind, stream);
      return;
    case 2:
      EITHER(d, cudaMemcpy3D, cudaMemcpy3D_ptds, &p);
      return;
    case 3:
      EITHER(d, cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz, &p, stream);
      return;
    case 4:
      EITHER(d, cudaMemcpy3DPeer, cudaMemcpy3DPeer_ptds, &peer);
      return;
    case 5:
      EITHER(d, cudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync_ptsz, &peer, stream);
      return;
    case 6:
      OK(CALL(cudaMemcpyPeer)(r.memory, r.device, r.memory + kRegion, r.device, width * height));
      return;
    default:
      OK(CALL(cudaMemcpyPeerAsync)(r.memory, r.device, r.memory + kRegion, r.device, width * height,
                                   stream));
  }
}

void array_copy(Dice& d, Rank& r) {
  if (r.arrays[0] == nullptr || d.chance(10)) renew(d, r);
  if (d.chance(40)) return box_of_arrays(d, r);
  const std::size_t row = kWidth * r.element;
  const std::size_t width = d.below(kWidth + 1) * r.element, height = d.below(kHeight + 1);
  const std::size_t bytes = d.below(kWidth * kHeight + 1) * r.element;
  char* host = (d.chance(50) ? r.pinned : r.pageable) + d.below(kRegion);
  cudaArray_t to = r.arrays[1], from = r.arrays[0];
  const bool any = d.chance(30);
  const cudaMemcpyKind in = any ? cudaMemcpyDefault : cudaMemcpyHostToDevice;
  const cudaMemcpyKind out = any ? cudaMemcpyDefault : cudaMemcpyDeviceToHost;
  const cudaMemcpyKind within = any ? cudaMemcpyDefault : cudaMemcpyDeviceToDevice;
  cudaStream_t s = draw_stream(d, r);
  switch (d.below(10)) {
    case 0:
      EITHER(d, cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds, to, 0, 0, host, row, width, height,
             in);
      return;
    case 1:
      EITHER(d, cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz, to, 0, 0, host, row, width,
             height, in, s);
      return;
    case 2:
      EITHER(d, cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds, host, row, from, 0, 0, width,
             height, out);
      return;
    case 3:
      EITHER(d, cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz, host, row, from, 0, 0,
             width, height, out, s);
      return;
    case 4:
      EITHER(d, cudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray_ptds, to, 0, 0, from, 0, 0,
             width, height, within);
      return;
    case 5:
      EITHER(d, cudaMemcpyToArray, cudaMemcpyToArray_ptds, to, 0, 0, host, bytes, in);
      return;
    case 6:
      EITHER(d, cudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync_ptsz, to, 0, 0, host, bytes, in, s);
      return;
    case 7:
      EITHER(d, cudaMemcpyFromArray, cudaMemcpyFromArray_ptds, host, from, 0, 0, bytes, out);
      return;
    case 8:
      EITHER(d, cudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync_ptsz, host, from, 0, 0, bytes,
             out, s);
      return;
    default:
      EITHER(d, cudaMemcpyArrayToArray, cudaMemcpyArrayToArray_ptds, to, 0, 0, from, 0, 0, bytes,
             within);
  }
}
