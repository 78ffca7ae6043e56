// Copies of two and three dimensions.
#include "../per_thread_copies.h"
#include "copies.h"

void box_copy(Dice& d, const Rank& r) {
  const Ends e = draw_ends(d, r);
  constexpr std::size_t kPitch = 512, kRows = 32;
  const std::size_t width = d.size(kPitch), height = d.size(kRows), depth = d.size(8);
  cudaMemcpy3DParms p{};
  p.srcPtr = {e.from, kPitch, width, kRows};
  p.dstPtr = {e.to, kPitch, width, kRows};
  p.extent = {width, height, depth};
  p.kind = e.kind;
  cudaStream_t stream = draw_stream(d, r);
  switch (d.below(6)) {
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
      OK(CALL(cudaMemcpyPeer)(r.memory, r.device, r.memory + kRegion, r.device, width * height));
      return;
    default:
      OK(CALL(cudaMemcpyPeerAsync)(r.memory, r.device, r.memory + kRegion, r.device, width * height,
                                   stream));
  }
}
