// What graphs.h says of graphs that are made and changed by hand.
#include "interpose/graphs/graphs.h"

#include "interpose/driver/graphs.h"
#include "interpose/graphs/registry.h"

namespace tprof::graphs {

namespace {

// A node of those that have no name: of which graph it is nobody tells.
void unknown_changed(bool GraphInfo::*unnamed) {
  g_graphs.model.each_graph([&](GraphId id) {
    if (g_graphs.model.graph(id).*unnamed) g_graphs.model.graph(id).unseen |= kUnseenEdit;
  });
}

}  // namespace

void created(cudaGraph_t graph) {
  const LockGuard guard(g_lock);
  g_graphs.create(graph);
}

void cloned(cudaGraph_t clone, cudaGraph_t original) {
  const LockGuard guard(g_lock);
  const GraphId from = g_graphs.find(original);
  const GraphId id = executable_of(from);
  if (id != 0) name_copies(id, clone);
}

void copy_added(cudaGraph_t graph, cudaGraphNode_t node, const Call& copy) {
  const LockGuard guard(g_lock);
  if (const GraphId id = g_graphs.find_or_create(graph)) add_call(id, node, copy);
}

void child_added(cudaGraph_t graph, cudaGraphNode_t node, cudaGraph_t child, bool moved) {
  const LockGuard guard(g_lock);
  const GraphId id = g_graphs.find_or_create(graph);
  if (id == 0) return;
  GraphId inner = g_graphs.find(child);
  if (!moved && inner != 0) {
    inner = g_graphs.model.copy(inner);
    if (inner != 0) name_copies(inner, graph_driver::child_of(node));
  } else if (inner != 0) {
    if (cudaGraph_t handle = graph_driver::child_of(node); handle != nullptr) {
      g_graphs.name(inner, handle);
    }
  }
  add_graph(id, GraphNode::Kind::child, node, inner);
}

void body_added(cudaGraph_t graph, cudaGraphNode_t node, cudaGraph_t body) {
  const LockGuard guard(g_lock);
  if (const GraphId id = g_graphs.find_or_create(graph))
    add_graph(id, GraphNode::Kind::body, node, g_graphs.create(body));
}

void unknown_added(cudaGraph_t graph) {
  const LockGuard guard(g_lock);
  if (const GraphId id = g_graphs.find(graph)) g_graphs.model.graph(id).unseen |= kUnseenPart;
}

void child_changed(cudaGraphNode_t node) {
  const LockGuard guard(g_lock);
  if (const std::uint32_t n = g_graphs.model.find_node(node)) {
    g_graphs.model.graph(g_graphs.model.node(n).graph).unseen |= kUnseenEdit;
  }
}

void copy_changed(cudaGraphNode_t node, const Call& copy) {
  const LockGuard guard(g_lock);
  if (const std::uint32_t n = g_graphs.model.find_node(node)) {
    g_graphs.model.node(n).key = copy.key;
    g_graphs.model.node(n).count = copy.count;
    return;
  }
  unknown_changed(&GraphInfo::unnamed);
}

GraphId removing(cudaGraphNode_t node) {
  using graph_driver::NodeKind;
  const NodeKind kind = graph_driver::kind_of(node);
  const bool copy = kind == NodeKind::copy || kind == NodeKind::unknown;
  const bool nccl =
      kind == NodeKind::unknown || (kind == NodeKind::kernel && graph_driver::may_be_nccl(node));
  const LockGuard guard(g_lock);
  GraphId from = 0;
  // A conditional node has an entry for each of its bodies.
  while (const std::uint32_t n = g_graphs.model.find_node(node)) {
    GraphNode& gone = g_graphs.model.node(n);
    from = gone.graph;
    gone.kind = GraphNode::Kind::removed;
    if (gone.inner != 0) g_graphs.destroy(gone.inner);
    gone.inner = 0;
  }
  if (from == 0 && copy) unknown_changed(&GraphInfo::unnamed);
  if (from == 0 && nccl) unknown_changed(&GraphInfo::unnamed_nccl);
  return from;
}

void not_removed(GraphId from) {
  const LockGuard guard(g_lock);
  if (from != 0) g_graphs.model.graph(from).unseen |= kUnseenEdit;
}

void destroying(cudaGraph_t graph) {
  const LockGuard guard(g_lock);
  if (const GraphId id = g_graphs.find(graph)) g_graphs.destroy(id);
}

}  // namespace tprof::graphs
