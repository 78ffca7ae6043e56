// The calls that were captured into graphs, by the handles that the program knows the graphs by.
#pragma once

#include "interpose/base/lock.h"
#include "interpose/base/pages.h"
#include "interpose/record/graphs.h"

namespace tprof::graphs {

struct CapturedCall {
  Call call;
  const void* node;    // the cudaGraphNode_t that a copy made; null: not known, or no copy
  std::uint32_t next;  // in its graph, 1-based; 0: the last one
};

inline bool is_copy(const CapturedCall& c) {
  return tprof::is_copy(std::bit_cast<LedgerKey>(c.call.key).bucket);
}

// Guards captures and executables, and is never held while the driver is asked.
extern Lock g_lock;

// Appends the calls that were captured into `graph`. True: its only capture was seen from its
// beginning, so that every NCCL kernel in it belongs to one of the calls.
bool captured_calls(cudaGraph_t graph, Pages<CapturedCall>& calls);

// Why a launch of a graph is not counted whole; both can hold. A part of it may be NCCL's kernels,
// child graphs or nodes of unknown kinds. Or bodies of conditional nodes run as often as the device
// decides.
inline constexpr std::uint32_t kUnseenPart = 1;
inline constexpr std::uint32_t kUnseenConditional = 2;

// Appends what one launch would execute. Returns what is unseen of it.
std::uint32_t contents_of(cudaGraph_t graph, int device, Pages<Call>& calls);

void forget_captures();  // in the child of a fork

}  // namespace tprof::graphs
