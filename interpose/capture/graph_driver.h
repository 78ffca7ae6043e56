// What the driver tells about captures and graphs. Its answers never touch the runtime's last
// error, and its handles are the runtime's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tprof::graph_driver {

struct Capture {
  std::uint64_t id;   // CUDA's number of the capture that a stream is in
  cudaGraph_t graph;  // that it makes
  const void*
      before;  // the only node that the next one comes after, null if there are more or none
};
enum class CaptureStatus : std::uint8_t { none, active, invalid };
// Fills `capture` where it is active.
CaptureStatus capture_of(cudaStream_t stream, Capture& capture);

// The node of `clone` that was `node` in the graph it was cloned from; null: not known.
cudaGraphNode_t in_clone(const void* node, const void* clone);
// The graph within a child graph node; null: not known.
cudaGraph_t child_of(const void* node);
// Whether it is known to be no copy.
bool is_no_copy(const void* node);

}  // namespace tprof::graph_driver
