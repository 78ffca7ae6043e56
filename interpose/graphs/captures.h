// The calls that were captured into graphs, by the handles that the program knows the graphs by.
#pragma once

#include "interpose/base/lock.h"
#include "interpose/base/pages.h"
#include "interpose/graphs/graphs.h"

namespace tprof::graphs {

struct CapturedCall {
  Call call;
  // cudaGraphNode_t that the call made: of an NCCL call its kernel's, of a group's the kernel of
  // all its calls. Null where it is not known.
  const void* node;
  Placed placed;
  std::uint32_t next;  // in its graph, 1-based; 0: the last one
};

inline bool is_copy(const CapturedCall& c) {
  return tprof::is_copy(std::bit_cast<LedgerKey>(c.call.key).bucket);
}

// Of captures and executables, and never held while the driver is asked.
extern Lock g_lock;

// Appends the calls that were captured into `graph`. True: its only capture was seen from its
// beginning, so that every NCCL kernel in it belongs to one of the calls.
bool captured_calls(cudaGraph_t graph, Pages<CapturedCall>& calls);

void forget_captures();  // in the child of a fork

}  // namespace tprof::graphs
