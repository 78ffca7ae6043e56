#include "interpose/graphs/model.h"

namespace tprof {

using Kind = GraphNode::Kind;

GraphId GraphModel::create(const void* handle) {
  GraphId id = free_graph_;
  if (id == 0) {
    graphs_.push_back({});
    if (graphs_.failed()) return 0;
    id = static_cast<GraphId>(graphs_.size());
  } else {
    free_graph_ = graph(id).first;
  }
  GraphInfo& made = graph(id);
  made = {};
  made.handle = handle;
  made.life = ++lives_;
  made.in_use = true;
  return id;
}

void GraphModel::release(GraphId id) {
  GraphInfo& gone = graph(id);
  for (std::uint32_t n = gone.first; n != 0;) {
    GraphNode& at = node(n);
    const std::uint32_t next = at.next;
    at = {};
    at.next = free_node_;
    free_node_ = n;
    n = next;
  }
  gone = {};
  gone.first = free_graph_;
  free_graph_ = id;
}

bool GraphModel::add(GraphId id, const GraphNode& added) {
  std::uint32_t n = free_node_;
  if (n == 0) {
    nodes_.push_back({});
    if (nodes_.failed()) {
      graph(id).unseen |= kUnseenPart;
      return false;
    }
    n = static_cast<std::uint32_t>(nodes_.size());
  } else {
    free_node_ = node(n).next;
  }
  node(n) = added;
  node(n).graph = id;
  node(n).next = 0;
  GraphInfo& to = graph(id);
  if (to.last == 0) {
    to.first = n;
  } else {
    node(to.last).next = n;
  }
  to.last = n;
  return true;
}

GraphId GraphModel::copy(GraphId from) {
  const GraphId made = create(nullptr);
  if (made == 0) return 0;
  graph(made).unseen = graph(from).unseen;
  graph(made).unnamed = graph(from).unnamed;
  graph(made).unnamed_nccl = graph(from).unnamed_nccl;
  for (std::uint32_t n = graph(from).first; n != 0; n = node(n).next) {
    GraphNode twin = node(n);
    if (twin.kind == Kind::removed) continue;
    if (twin.inner != 0) {
      twin.inner = copy(twin.inner);
      if (twin.inner == 0) {
        graph(made).unseen |= kUnseenPart;
        continue;
      }
    }
    add(made, twin);
  }
  return made;
}

std::uint32_t GraphModel::find_node(const void* handle) {
  for (std::uint32_t n = 1; handle != nullptr && n <= nodes_.size(); ++n) {
    const GraphNode& at = node(n);
    if (at.handle != handle || at.kind == Kind::removed) continue;
    if (graph(at.graph).handle != nullptr) return n;
  }
  return 0;
}

std::uint32_t GraphModel::find_node(GraphId id, const void* handle) {
  if (handle == nullptr) return 0;
  for (std::uint32_t n = graph(id).first; n != 0; n = node(n).next) {
    if (node(n).handle == handle && node(n).kind != Kind::removed) return n;
    if (node(n).inner == 0) continue;
    if (const std::uint32_t found = find_node(node(n).inner, handle)) return found;
  }
  return 0;
}

bool GraphModel::has_calls(GraphId id) {
  if (graph(id).unseen != 0) return true;
  for (std::uint32_t n = graph(id).first; n != 0; n = node(n).next) {
    if (node(n).kind == Kind::call) return true;
    if (node(n).inner != 0 && has_calls(node(n).inner)) return true;
  }
  return false;
}

void GraphModel::forget_all() {
  graphs_.release();
  nodes_.release();
  free_graph_ = 0;
  free_node_ = 0;
}

}  // namespace tprof
