// What graphs.h says of executable graphs.
#include <algorithm>
#include <span>

#include "interpose/driver/graphs.h"
#include "interpose/format/coverage.h"
#include "interpose/graphs/contents.h"
#include "interpose/graphs/registry.h"
#include "interpose/graphs/scan.h"
#include "interpose/session/coverage.h"

namespace tprof::graphs {

namespace {

// Read without the lock.
HandleMap<kMaxHandles> g_launchable;  // cudaGraphExec_t -> index in the mapped file

// Whether a node of it that we do not know may be a call that we do.
bool has_unnamed(GraphId id, bool GraphInfo::*unnamed) {
  bool found = g_graphs.model.graph(id).*unnamed;
  g_graphs.model.each_node(id, [&](const GraphNode& node) {
    found = found || (node.inner != 0 && g_graphs.model.graph(node.inner).*unnamed);
  });
  return found;
}
bool may_be_known(GraphId id, const void* node, graph_driver::NodeKind kind) {
  using graph_driver::NodeKind;
  if (kind != NodeKind::copy && kind != NodeKind::kernel && kind != NodeKind::unknown) return false;
  if (kind != NodeKind::kernel && has_unnamed(id, &GraphInfo::unnamed)) return true;
  return kind != NodeKind::copy && has_unnamed(id, &GraphInfo::unnamed_nccl) &&
         graph_driver::may_be_nccl(node);
}

// An executable of `graph` as it is now, whoever made it.
GraphId executable_now(cudaGraph_t graph) {
  const GraphId id = g_graphs.find_or_create(graph);
  if (id != 0) look_at(id, graph);
  const GraphId made = executable_of(id);
  if (id != 0 && g_graphs.model.graph(id).handle == nullptr) g_graphs.destroy(id);  // no room
  return made;
}

void enter_executable(cudaGraphExec_t handle, GraphId id) {
  g_launchable.erase(handle);
  if (const GraphId before = g_executable.find(handle)) g_graphs.destroy(before);
  if (id == 0 || !g_executable.insert(handle, id)) {
    g_executable.erase(handle);
    if (id != 0) g_graphs.destroy(id);
  }
}

// A node of an executable that is about to change. 0: it is none that is counted, or, if it may be
// one, the executable's `unseen` says that.
std::uint32_t changing(cudaGraphExec_t handle, const void* node, bool surely_copy) {
  using graph_driver::NodeKind;
  const GraphId id = g_executable.find(handle);
  if (id == 0) return 0;
  g_launchable.erase(handle);
  if (const std::uint32_t n = g_graphs.model.find_node(id, node)) return n;
  if (may_be_known(id, node, surely_copy ? NodeKind::copy : graph_driver::kind_of(node))) {
    g_graphs.model.graph(id).unseen |= kUnseenEdit;
  }
  return 0;
}

// Of one graph at a time, by handle.
struct Place {
  const void* handle;
  GraphNode* node;
};
Pages<Place> g_sorted;
constexpr auto kByHandle = [](const Place& a, const Place& b) { return a.handle < b.handle; };

void sort_nodes(GraphId id) {
  g_sorted.clear();
  g_graphs.model.each_node(id, [](GraphNode& node) {
    if (node.kind != GraphNode::Kind::removed) g_sorted.push_back({node.handle, &node});
  });
  std::sort(g_sorted.begin(), g_sorted.end(), kByHandle);
}

std::span<Place> sorted_nodes(const void* handle) {
  if (handle == nullptr) return {};
  const auto [first, last] =
      std::equal_range(g_sorted.begin(), g_sorted.end(), Place{handle, nullptr}, kByHandle);
  return {first, last};
}

void note(std::uint32_t unseen) {
  static constexpr struct {
    std::uint32_t unseen;
    Note note;
  } kNotes[] = {{kUnseenPart, Note::graph_unknown},
                {kUnseenEdit, Note::graph_edited},
                {kUnseenConditional, Note::graph_conditional}};
  for (const auto& n : kNotes) {
    if ((unseen & n.unseen) != 0) {
      coverage::note(session::mapping().head(), n.note, "cudaGraphLaunch");
    }
  }
}

}  // namespace

void instantiated(cudaGraphExec_t executable, cudaGraph_t graph, bool for_device) {
  const LockGuard guard(g_lock);
  const GraphId id = executable_now(graph);
  enter_executable(executable, id);
  if (!for_device || id == 0) return;
  std::size_t calls = 0;
  g_graphs.model.each_call(id, [&](const GraphNode&) { ++calls; });
  if (calls == 0) return;
  coverage::note(session::mapping().head(), Note::graph_device_launch, "cudaGraphInstantiate");
}

void updated(cudaGraphExec_t executable, cudaGraph_t graph) {
  const LockGuard guard(g_lock);
  const GraphId before = g_executable.find(executable);
  if (before == 0) return;
  const GraphId id = executable_now(graph);
  if (id == 0) return enter_executable(executable, 0);
  GraphInfo& info = g_graphs.model.graph(id);
  info.life = g_graphs.model.graph(before).life;
  // An update leaves disabled what was disabled. Which node of another graph stands for it is for
  // CUDA to know; so is from now on which one the old handles mean.
  sort_nodes(id);
  g_graphs.model.each_node(before, [&](const GraphNode& node) {
    if (node.kind != GraphNode::Kind::call) return;
    const auto same = sorted_nodes(node.handle);
    if (same.empty() && node.handle != nullptr) lost_name(id, node);
    // Without a handle it was put into the graph as it is: an executable's launch was captured.
    if (node.enabled || node.handle == nullptr) return;
    if (same.empty()) g_graphs.model.graph(id).unseen |= kUnseenEdit;
    for (const Place& at : same) at.node->enabled = false;
  });
  enter_executable(executable, id);
}

void copy_changed(cudaGraphExec_t executable, cudaGraphNode_t node, const Call& copy) {
  const LockGuard guard(g_lock);
  if (const std::uint32_t n = changing(executable, node, true)) {
    g_graphs.model.node(n).key = copy.key;
    g_graphs.model.node(n).count = copy.count;
  }
}

void child_changed(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child) {
  const LockGuard guard(g_lock);
  const std::uint32_t n = changing(executable, node, false);
  if (n == 0) {
    if (const GraphId id = g_executable.find(executable))
      g_graphs.model.graph(id).unseen |= kUnseenEdit;
    return;
  }
  const GraphId inner = executable_now(child);
  g_graphs.destroy(g_graphs.model.node(n).inner);
  g_graphs.model.node(n).inner = inner;
  if (inner == 0) {
    g_graphs.model.node(n).kind = GraphNode::Kind::removed;
    g_graphs.model.graph(g_graphs.model.node(n).graph).unseen |= kUnseenPart;
    return;
  }
  // Later changes name the nodes of the graph that the executable was made of.
  forget_handles(inner);
}

void enabled(cudaGraphExec_t executable, cudaGraphNode_t node, bool on) {
  const LockGuard guard(g_lock);
  const std::uint32_t first = changing(executable, node, false);
  if (first == 0) return;
  g_graphs.model.each_node(g_executable.find(executable), [&](GraphNode& at) {
    if (at.handle == node) at.enabled = on;
  });
}

void destroying(cudaGraphExec_t executable) {
  const LockGuard guard(g_lock);
  enter_executable(executable, 0);
}

std::uint32_t launchable(Thread& t, cudaGraphExec_t executable) {
  if (const std::uint32_t known = g_launchable.find(executable)) return known;
  const LockGuard guard(g_lock);
  std::uint32_t unseen = kUnseenPart;
  std::uint32_t index = 0;
  if (const GraphId id = g_executable.find(executable)) {
    index = graph_contents::entry_of(t, g_graphs.model, id, unseen);
    if (index == 0) unseen |= kUnseenPart;
  }
  note(unseen);
  if (index != 0) g_launchable.insert(executable, index);
  return index;
}

void forget_all() {
  g_graphs.clear();
  g_executable.clear();
  g_launchable.clear();
  graph_contents::forget_all();
  g_lock.unlock();
}

}  // namespace tprof::graphs
