// Copies of one rank.
#include "../per_thread_copies.h"
#include "player.h"

void copy_turn(Player& p, Dice& d, const Rank& r) {
  OK(CALL(cudaSetDevice)(d.chance(90) ? r.device : static_cast<int>(d.below(4))));
  char* device = r.memory + d.below(kRegion);
  char* device_or_managed = d.chance(80) ? device : r.managed + d.below(kRegion);
  char* host = (d.chance(50) ? r.pinned : r.pageable) + d.below(kRegion);
  const std::size_t bytes = d.size(kRegion);
  (void)p;
  const cudaStream_t streams[] = {r.streams[0], r.streams[1],     r.streams[2],
                                  nullptr,      cudaStreamLegacy, cudaStreamPerThread};
  const cudaStream_t stream = d.one_of(streams);
  const bool by_pointer = d.chance(30);
  const bool in = d.chance(50), within = d.chance(20);
  char* to = in || within ? device_or_managed : host;
  char* from = in ? host : r.memory + kRegion;
  cudaMemcpyKind kind = in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  if (within && !in) kind = cudaMemcpyDeviceToDevice;
  if (by_pointer) kind = cudaMemcpyDefault;
  switch (d.below(4)) {
    case 0:
      OK(CALL(cudaMemcpy)(to, from, bytes, kind));
      return;
    case 1:
      OK(CALL(cudaMemcpyAsync)(to, from, bytes, kind, stream));
      return;
    case 2:
      OK(CALL(cudaMemcpy_ptds)(to, from, bytes, kind));
      return;
    default:
      OK(CALL(cudaMemcpyAsync_ptsz)(to, from, bytes, kind, stream));
      return;
  }
}
