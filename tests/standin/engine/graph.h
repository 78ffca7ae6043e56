// CUDA graphs: nodes from a capture or from cudaGraphAdd* calls, and their launches.
#pragma once

#include <map>

#include "engine/stream.h"

struct CUgraphNode_st {
  standin::Op op;
  std::vector<cudaGraphNode_t> after;
  int lane = 0;                 // the captured stream it came from; lanes run side by side
  cudaGraph_t child = nullptr;  // owned
  cudaGraph_t graph = nullptr;
  // The bodies of a conditional node, owned: one of them runs, or none. No kernel here sets a
  // condition, so it keeps the value that its handle was created with.
  std::vector<cudaGraph_t> bodies;
  size_t chosen = 0;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // in an order that respects `after`
  ~CUgraph_st();
};

struct CUgraphExec_st {
  struct Step {
    standin::Op op;
    std::vector<size_t> after;
    size_t lane;
  };
  cudaGraph_t graph = nullptr;  // owned: a clone of the graph it was made from
  std::vector<Step> steps;
  std::vector<standin::StreamRef> lanes;  // [0] is the stream of the launch
  standin::Mark last;
};

namespace standin {

cudaGraphNode_t add_node(CUgraph_st& graph, Op op, std::vector<cudaGraphNode_t> after, int lane);
cudaGraph_t clone_graph(const CUgraph_st& graph);
// Copies the parameters of `from`'s nodes to those of `graph`. Returns false, and changes nothing,
// if the two are built differently.
bool copy_parameters(CUgraph_st& graph, const CUgraph_st& from);
// Makes launches of `exec` execute its graph as it is now.
void lay_out(CUgraphExec_st& exec, int device);
cudaError_t launch_graph(CUgraphExec_st& exec, CUstream_st& stream);

}  // namespace standin
