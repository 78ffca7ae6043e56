// CUDA graphs: what a capture or the cudaGraphAdd* calls collected, and its launches.
#pragma once

#include <map>

#include "engine/stream.h"

struct CUgraphNode_st {
  standin::Op op;
  std::vector<cudaGraphNode_t> after;
  int lane = 0;                 // the captured stream it came from; lanes run side by side
  cudaGraph_t child = nullptr;  // owned
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t original = nullptr;  // in the graph that this one was cloned from
  bool enabled = true;                 // in an executable
  // A conditional node: one of these runs, or none. No kernel here sets a condition, so it is
  // what its handle was created with. Owned.
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
  cudaGraph_t graph = nullptr;  // what it executes: owned, cloned from what it was made of
  std::vector<Step> steps;
  std::vector<standin::StreamRef> lanes;  // [0] is the stream of the launch
  standin::Mark last;
};

namespace standin {

cudaGraphNode_t add_node(CUgraph_st& graph, Op op, std::vector<cudaGraphNode_t> after, int lane);
cudaGraph_t clone_graph(const CUgraph_st& graph);
// In its graph or in the child graphs of that; null: none.
CUgraphNode_st* find_twin(const CUgraph_st& clone, cudaGraphNode_t original);
// The nodes of `graph` get the parameters of those of `from`. False, and nothing changed: it is
// built differently.
bool copy_parameters(CUgraph_st& graph, const CUgraph_st& from);
// What its graph is now is what launches execute.
void lay_out(CUgraphExec_st& exec, int device);
cudaError_t launch_graph(CUgraphExec_st& exec, CUstream_st& stream);

}  // namespace standin
