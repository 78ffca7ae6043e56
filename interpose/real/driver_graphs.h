// Asks the driver about captures and graphs. Its answers never touch the runtime's last error, and
// its handles are the runtime's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/real/copy_args.h"

namespace tprof::graph_driver {

// Stands for the graph of a capture that is refused or has failed: there will be none.
inline const auto kNoGraph = reinterpret_cast<cudaGraph_t>(std::uintptr_t{1});  // NOLINT
// Returns the graph that the stream captures into; null: it captures into none.
cudaGraph_t captured_into(cudaStream_t stream);

// The kind of a node, as far as it bears on what is counted.
enum class NodeKind : std::uint8_t { copy, kernel, child, conditional, other, unknown };
NodeKind kind_of(const void* node);
// Gets the nodes of a graph, up to `room`, and returns how many; with no room, how many there are.
// -1: not known.
std::ptrdiff_t nodes_of(const void* graph, const void** nodes, std::size_t room);
// True if a copy's node copies within a device, or between two.
bool copies_within_device(const void* node);

// True of ncclDevKernel_AllGather_RING_LL and the like, mangled or not, and of ncclSymkDevKernel_,
// which symmetric memory has.
inline bool is_of_nccl(std::string_view kernel) {
  const std::size_t nccl = kernel.find("nccl");
  return nccl != std::string_view::npos && kernel.find("Kernel", nccl) != std::string_view::npos;
}
// True if a node's kernel is NCCL's, or may be: the driver of CUDA before 12.3 does not tell names.
bool may_be_nccl(const void* node);

}  // namespace tprof::graph_driver
