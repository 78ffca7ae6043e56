// Graphs as the driver tells of them, looked at when they are instantiated: copies that functions
// put there which nobody wraps are taken, and what such functions removed or changed is so here.
//
// Of a graph of 10,000 nodes on the stand-in, whose own instantiation takes 2 to 3 ms: 0.5 ms more,
// and 5 ms where all of them are copies.
#pragma once

#include "interpose/graphs/registry.h"

namespace tprof::graphs {

// `id` is the graph `handle`, and the graphs in it. Its NCCL calls are known but where its `unseen`
// has kUnseenPart: that stays where it holds kernels that may be NCCL's, and goes else. Its caller
// holds g_lock.
void look_at(GraphId id, const void* handle);

}  // namespace tprof::graphs
