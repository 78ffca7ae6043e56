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
  std::vector<Step> steps;
  std::vector<standin::StreamRef> lanes;  // [0] is the stream of the launch
  standin::Mark last;
};

namespace standin {

cudaGraphNode_t add_node(CUgraph_st& graph, Op op, std::vector<cudaGraphNode_t> after, int lane);
cudaGraph_t clone_graph(const CUgraph_st& graph);
void fill_exec(CUgraphExec_st& exec, const CUgraph_st& graph, int device);
cudaError_t launch_graph(CUgraphExec_st& exec, CUstream_st& stream);

}  // namespace standin
