// Asks the driver about captures and graphs, which never changes the runtime's last error. Its
// handles are the runtime's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/real/copy_args.h"

namespace tprof::graph_driver {

// Stands for the graph of a refused or failed capture.
inline const auto kNoGraph = reinterpret_cast<cudaGraph_t>(std::uintptr_t{1});  // NOLINT
// Returns the graph that the stream captures into; null: none.
cudaGraph_t captured_into(cudaStream_t stream);

// The kinds of nodes that matter for counting.
enum class NodeKind : std::uint8_t { copy, kernel, child, conditional, other, unknown };
NodeKind kind_of(const void* node);
// Gets at most `room` nodes of a graph and returns how many; with `room` 0, the number of all. -1:
// not known.
std::ptrdiff_t nodes_of(const void* graph, const void** nodes, std::size_t room);
// True if a copy node copies within a device, or between two.
bool copies_within_device(const void* node);

// True for ncclDevKernel_AllGather_RING_LL and the like, mangled or not, and ncclSymkDevKernel_
// (symmetric memory).
inline bool is_of_nccl(std::string_view kernel) {
  const std::size_t nccl = kernel.find("nccl");
  return nccl != std::string_view::npos && kernel.find("Kernel", nccl) != std::string_view::npos;
}
// True if a node's kernel is, or may be, NCCL's: drivers before CUDA 12.3 do not return names.
bool may_be_nccl(const void* node);

}  // namespace tprof::graph_driver
