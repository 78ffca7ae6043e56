// What the driver tells about captures and graphs. Its answers never touch the runtime's last
// error, and its handles are the runtime's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "interpose/driver/copy_args.h"

namespace tprof::graph_driver {

struct Capture {
  cudaGraph_t graph;  // that it makes
  const void*
      last_node;  // the only one that the next one comes after; null: more than one, or none
};
// Of a capture that is refused or has failed: there will be no graph.
inline const auto kNoGraph = reinterpret_cast<cudaGraph_t>(std::uintptr_t{1});  // NOLINT
enum class CaptureStatus : std::uint8_t { none, active, invalid };
// Fills `capture` where it is active.
CaptureStatus capture_of(cudaStream_t stream, Capture& capture);

// The graph within a child graph node; null: not known.
cudaGraph_t child_of(const void* node);

// What a node is, as far as it bears on what is counted.
enum class NodeKind : std::uint8_t { copy, kernel, child, conditional, other, unknown };
NodeKind kind_of(const void* node);
// The nodes of a graph, up to `room`; -1: not known. With no room, how many there are.
std::ptrdiff_t nodes_of(const void* graph, const void** nodes, std::size_t room);
// False where the driver does not tell what the node copies.
bool copy_in(const void* node, CopyArgs& copy);
// Whether a kernel is NCCL's, or may be: the driver of CUDA before 12.3 does not tell names.
bool may_be_nccl(const void* node);

}  // namespace tprof::graph_driver
