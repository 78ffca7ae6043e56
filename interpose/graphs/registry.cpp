#include "interpose/graphs/registry.h"

#include "interpose/driver/graphs.h"

namespace tprof::graphs {

Lock g_lock;
constinit Registry g_graphs;
HandleMap<kMaxHandles> g_executable;

void Registry::name(GraphId id, const void* handle) {
  if (const GraphId stale = find(handle); stale != 0 && stale != id) destroy(stale);
  model.graph(id).handle = handle;
  if (!ids_.insert(handle, id)) model.graph(id).handle = nullptr;
}

GraphId Registry::create(const void* handle) {
  const GraphId id = model.create(nullptr);
  if (id != 0) name(id, handle);
  return id;
}

GraphId Registry::find_or_create(const void* handle) {
  if (const GraphId known = find(handle)) return known;
  const GraphId id = create(handle);
  if (id != 0) model.graph(id).unseen |= kUnseenPart;
  return id;
}

void Registry::destroy(GraphId id) {
  model.destroy(id, [&](const void* handle, GraphId gone) {
    if (find(handle) == gone) ids_.erase(handle);
  });
}

void Registry::clear() {
  ids_.clear();
  model.forget_all();
}

void lost_name(GraphId id, const GraphNode& node) {
  GraphInfo& info = g_graphs.model.graph(id);
  (node.kind == GraphNode::Kind::call && !is_copy(node) ? info.unnamed_nccl : info.unnamed) = true;
}

void name_copies(GraphId id, cudaGraph_t handle) {
  if (handle != nullptr) g_graphs.name(id, handle);
  for (std::uint32_t n = g_graphs.model.graph(id).first; n != 0; n = g_graphs.model.node(n).next) {
    const void* original = g_graphs.model.node(n).handle;
    const void* own = graph_driver::in_clone(original, handle);
    g_graphs.model.node(n).handle = own;
    if (original != nullptr && own == nullptr) lost_name(id, g_graphs.model.node(n));
    if (g_graphs.model.node(n).kind == GraphNode::Kind::child) {
      name_copies(g_graphs.model.node(n).inner, graph_driver::child_of(own));
    } else if (g_graphs.model.node(n).kind == GraphNode::Kind::body) {
      g_graphs.model.graph(id).unseen |= kUnseenPart;  // what is captured into it from now on
    }
  }
}

void forget_handles(GraphId id) {
  g_graphs.model.each_node(id, [](GraphNode& node) { node.handle = nullptr; });
  g_graphs.model.graph(id).unnamed = true;
  g_graphs.model.graph(id).unnamed_nccl = true;
}

void add_call(GraphId id, const void* handle, const Call& call) {
  GraphNode node{};
  node.handle = handle;
  node.key = call.key;
  node.count = call.count;
  node.kind = GraphNode::Kind::call;
  node.enabled = true;
  g_graphs.model.add(id, node);
}

void add_graph(GraphId id, GraphNode::Kind kind, const void* handle, GraphId inner) {
  GraphNode node{};
  node.handle = handle;
  node.kind = kind;
  node.inner = inner;
  if (inner == 0) {
    g_graphs.model.graph(id).unseen |= kUnseenPart;
  } else if (!g_graphs.model.add(id, node)) {
    g_graphs.destroy(inner);
  }
}

GraphId executable_of(GraphId graph) {
  const GraphId id = graph == 0 ? g_graphs.model.create(nullptr) : g_graphs.model.copy(graph);
  if (id != 0 && graph == 0) g_graphs.model.graph(id).unseen |= kUnseenPart;
  return id;
}

}  // namespace tprof::graphs
