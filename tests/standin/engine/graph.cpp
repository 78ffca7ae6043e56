#include "engine/graph.h"

#include <algorithm>

#include "engine/activity.h"

namespace standin {

cudaGraphNode_t add_node(CUgraph_st& graph, Op op, std::vector<cudaGraphNode_t> after, int lane) {
  auto node = std::make_unique<CUgraphNode_st>();
  node->op = std::move(op);
  node->after = std::move(after);
  node->lane = lane;
  node->graph = &graph;
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

cudaGraph_t clone_graph(const CUgraph_st& graph) {
  auto* copy = new CUgraph_st;
  std::map<cudaGraphNode_t, cudaGraphNode_t> twin;
  for (const auto& node : graph.nodes) {
    std::vector<cudaGraphNode_t> after;
    for (cudaGraphNode_t before : node->after) after.push_back(twin.at(before));
    cudaGraphNode_t made = add_node(*copy, node->op, std::move(after), node->lane);
    if (node->child) made->child = clone_graph(*node->child);
    for (cudaGraph_t body : node->bodies) made->bodies.push_back(clone_graph(*body));
    made->chosen = node->chosen;
    twin[node.get()] = made;
  }
  return copy;
}

namespace {

// Child graphs are laid out in place: a node that comes after a child comes after all of it.
void add_steps(CUgraphExec_st& exec, const CUgraph_st& graph, const std::vector<size_t>& before) {
  std::map<cudaGraphNode_t, std::vector<size_t>> steps;
  for (const auto& node : graph.nodes) {
    std::vector<size_t> after = before;
    for (cudaGraphNode_t earlier : node->after) {
      after.insert(after.end(), steps[earlier].begin(), steps[earlier].end());
    }
    const size_t first = exec.steps.size();
    if (node->child) {
      add_steps(exec, *node->child, after);
    } else if (node->chosen < node->bodies.size()) {
      add_steps(exec, *node->bodies[node->chosen], after);
    } else {
      exec.steps.push_back({node->op, std::move(after), static_cast<size_t>(node->lane)});
    }
    for (size_t i = first; i < exec.steps.size(); ++i) steps[node.get()].push_back(i);
  }
}

bool alike(const CUgraph_st& a, const CUgraph_st& b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const CUgraphNode_st &x = *a.nodes[i], &y = *b.nodes[i];
    if (x.op.type != y.op.type || x.after.size() != y.after.size()) return false;
    if ((x.child != nullptr) != (y.child != nullptr)) return false;
    if (x.child && !alike(*x.child, *y.child)) return false;
  }
  return true;
}

}  // namespace

bool copy_parameters(CUgraph_st& graph, const CUgraph_st& from) {
  if (!alike(graph, from)) return false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    graph.nodes[i]->op = from.nodes[i]->op;
    if (graph.nodes[i]->child) copy_parameters(*graph.nodes[i]->child, *from.nodes[i]->child);
  }
  return true;
}

void lay_out(CUgraphExec_st& exec, int device) {
  const std::lock_guard lock(engine_mutex());
  exec.steps.clear();
  add_steps(exec, *exec.graph, {});
  exec.lanes.resize(std::max<size_t>(exec.lanes.size(), 1));
  for (const auto& step : exec.steps) {
    while (exec.lanes.size() <= step.lane) {
      exec.lanes.push_back(create_stream(device, cudaStreamNonBlocking, 0));
    }
  }
}

cudaError_t launch_graph(CUgraphExec_st& exec, CUstream_st& stream) {
  const std::lock_guard lock(engine_mutex());
  if (stream.capture) {  // becomes a child graph
    submit(stream, {.type = cudaGraphNodeTypeGraph});
    stream.frontier.front()->child = clone_graph(*exec.graph);
    return cudaSuccess;
  }
  std::vector<tally::Row*> rows;
  std::vector<const Counted*> counted;
  for (const auto& step : exec.steps) {
    for (const Counted& c : step.op.counted) {
      rows.push_back(tally::enter(c.key));
      counted.push_back(&c);
    }
  }
  const int64_t now = now_ns();  // all of it is submitted at once
  // Launches of one graph do not overlap.
  const Mark start = submit(stream, {.after = {exec.last}, .submitted_ns = now});
  const uint32_t correlation = activity::called();  // one call, whatever it executes
  std::vector<Mark> marks;
  for (const auto& step : exec.steps) {
    Op op = step.op;
    op.correlation = correlation;
    op.submitted_ns = now;
    op.in_graph = true;
    op.after = {start};
    for (size_t before : step.after) op.after.push_back(marks[before]);
    marks.push_back(submit(step.lane == 0 ? stream : *exec.lanes[step.lane], std::move(op)));
  }
  exec.last =
      submit(stream, {.after = std::move(marks), .submitted_ns = now, .graph_began = start});
  for (size_t i = 0; i < rows.size(); ++i) {
    tally::returned(rows[i], counted[i]->count, counted[i]->bytes);
  }
  return cudaSuccess;
}

}  // namespace standin

CUgraph_st::~CUgraph_st() {
  for (const auto& node : nodes) {
    delete node->child;
    for (cudaGraph_t body : node->bodies) delete body;
  }
}
