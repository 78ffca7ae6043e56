// What is in a graph at this moment: its nodes as the driver tells of them, each explained by the
// captured call that made it. Copies that functions put there which nobody wraps are found by this,
// and what such functions removed or changed is so here.
//
// Of a graph of 10,000 nodes on the stand-in, whose own instantiation takes 2 to 3 ms: 0.5 ms more,
// and 5 ms where all of them are copies.
#pragma once

#include "interpose/base/pages.h"
#include "interpose/graphs/graphs.h"

namespace tprof::graphs {

// Why a launch of it is not counted whole: several of these.
enum Unseen : std::uint32_t {
  kUnseenPart = 1,  // kernels that may be NCCL's, or nodes of unknown kinds, of no captured call
  kUnseenEdit = 2,  // the kernel of a group of NCCL calls was removed
  kUnseenConditional = 4,  // conditional nodes, whose bodies run as often as the device decides
};

// Appends what one launch would execute. Returns what is Unseen of it.
std::uint32_t contents_of(cudaGraph_t graph, int device, Pages<Call>& calls);

}  // namespace tprof::graphs
