#include "graphs.h"

#include "graph_contents.h"
#include "graph_driver.h"
#include "handle_map.h"
#include "interpose/format/coverage.h"
#include "interpose/session/coverage.h"

namespace tprof::graphs {

std::atomic<bool> g_any_capture{false};

namespace {

using Kind = GraphNode::Kind;
using graph_driver::CaptureStatus;

constexpr std::uint32_t kMaxHandles = 16384;
// A graph that a call is captured into, and that we could not note.
constexpr GraphId kUnknownGraph = UINT32_MAX;

// All of it but g_launchable, which launches read without it, is under g_lock.
SpinLock g_lock;
constinit GraphModel g_model;
HandleMap<kMaxHandles> g_graph;       // cudaGraph_t -> GraphId
HandleMap<kMaxHandles> g_executable;  // cudaGraphExec_t -> GraphId
HandleMap<kMaxHandles> g_launchable;  // cudaGraphExec_t -> index in the mapped file

void forget_handle(const void* handle, GraphId id) {
  if (g_graph.find(handle) == id) g_graph.erase(handle);
}
void destroy(GraphId id) {
  g_model.destroy(id, forget_handle);
}

// `id` is what `handle` means from now on; what it meant before was destroyed without our seeing.
void name(GraphId id, const void* handle) {
  if (const GraphId stale = g_graph.find(handle); stale != 0 && stale != id) destroy(stale);
  g_model.graph(id).handle = handle;
  if (!g_graph.insert(handle, id)) g_model.graph(id).handle = nullptr;
}

GraphId create(const void* handle) {
  const GraphId id = g_model.create(nullptr);
  if (id != 0) name(id, handle);
  return id;
}

// Gives the nodes of `id`, a copy of another graph's, the handles that they have in `handle`.
void name_copies(GraphId id, cudaGraph_t handle) {
  if (handle != nullptr) name(id, handle);
  for (std::uint32_t n = g_model.graph(id).first; n != 0; n = g_model.node(n).next) {
    const void* original = g_model.node(n).handle;
    const void* own = graph_driver::in_clone(original, handle);
    g_model.node(n).handle = own;
    if (original != nullptr && own == nullptr) g_model.graph(id).unnamed = true;
    if (g_model.node(n).kind == Kind::child) {
      name_copies(g_model.node(n).inner, graph_driver::child_of(own));
    } else if (g_model.node(n).kind == Kind::body) {
      g_model.graph(id).unseen |= kUnseenPart;  // what is captured into it from now on
    }
  }
}

// Whether a node of it that we do not know may be a copy that we do.
bool has_unnamed(GraphId id) {
  bool found = g_model.graph(id).unnamed;
  g_model.each_node(id, [&](const GraphNode& node) {
    found = found || (node.inner != 0 && g_model.graph(node.inner).unnamed);
  });
  return found;
}

void add_call(GraphId id, const void* handle, const Call& call) {
  GraphNode node{};
  node.handle = handle;
  node.key = call.key;
  node.count = call.count;
  node.kind = Kind::call;
  node.enabled = true;
  g_model.add(id, node);
}

void add_graph(GraphId id, Kind kind, const void* handle, GraphId inner) {
  GraphNode node{};
  node.handle = handle;
  node.kind = kind;
  node.inner = inner;
  if (inner == 0) {
    g_model.graph(id).unseen |= kUnseenPart;
  } else if (!g_model.add(id, node)) {
    destroy(inner);
  }
}

// An executable of what is in `graph`.
GraphId executable_of(GraphId graph) {
  const GraphId id = graph == 0 ? g_model.create(nullptr) : g_model.copy(graph);
  if (id != 0 && graph == 0) g_model.graph(id).unseen |= kUnseenPart;
  return id;
}

void enter_executable(cudaGraphExec_t handle, GraphId id) {
  g_launchable.erase(handle);
  if (const GraphId before = g_executable.find(handle)) destroy(before);
  if (id == 0 || !g_executable.insert(handle, id)) {
    g_executable.erase(handle);
    if (id != 0) destroy(id);
  }
}

// A node of an executable that is about to change. 0: it is none that is counted, or, if it may be
// one, the executable's `unseen` says that.
std::uint32_t changing(cudaGraphExec_t handle, const void* node, bool surely_copy) {
  const GraphId id = g_executable.find(handle);
  if (id == 0) return 0;
  g_launchable.erase(handle);
  if (const std::uint32_t n = g_model.find_node(id, node)) return n;
  if (has_unnamed(id) && (surely_copy || !graph_driver::is_no_copy(node))) {
    g_model.graph(id).unseen |= kUnseenEdit;
  }
  return 0;
}

// Of which graph it is nobody tells.
void unknown_copy_changed() {
  g_model.each_graph([&](GraphId id) {
    if (g_model.graph(id).unnamed) g_model.graph(id).unseen |= kUnseenEdit;
  });
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

Capture capturing_slow(cudaStream_t stream) {
  graph_driver::Capture now;
  const CaptureStatus status = graph_driver::capture_of(stream, now);
  if (status == CaptureStatus::none) return {};
  // Refused, or without effect: there will be no graph.
  if (status == CaptureStatus::invalid) return {kUnknownGraph, nullptr};
  const SpinGuard guard(g_lock);
  GraphId id = g_graph.find(now.graph);
  if (id == 0 || g_model.graph(id).capture != now.id) {
    // Begun by a call that we did not see.
    id = create(now.graph);
    if (id == 0) return {kUnknownGraph, nullptr};
    g_model.graph(id).capture = now.id;
    g_model.graph(id).unseen |= kUnseenPart;
  }
  return {id, now.before};
}

void captured_call(GraphId graph, const Call& call) {
  const SpinGuard guard(g_lock);
  if (graph != kUnknownGraph) add_call(graph, nullptr, call);
}

void captured_copy(const Capture& capture, cudaStream_t stream, const Call& copy) {
  graph_driver::Capture now{};
  const bool active = graph_driver::capture_of(stream, now) == CaptureStatus::active;
  const SpinGuard guard(g_lock);
  if (capture.graph == kUnknownGraph) return;
  // A copy of nothing may have no node.
  const void* node = active && now.before != capture.before ? now.before : nullptr;
  if (node == nullptr && copy.count != 0) g_model.graph(capture.graph).unnamed = true;
  add_call(capture.graph, node, copy);
}

void captured_batch(GraphId graph, const Call& copies) {
  const SpinGuard guard(g_lock);
  if (graph == kUnknownGraph) return;
  g_model.graph(graph).unnamed = true;
  add_call(graph, nullptr, copies);
}

void captured_launch(GraphId graph, cudaGraphExec_t executable) {
  const SpinGuard guard(g_lock);
  if (graph == kUnknownGraph) return;
  add_graph(graph, Kind::child, nullptr, executable_of(g_executable.find(executable)));
  g_model.graph(graph).unnamed = true;
}

void began(cudaStream_t stream, bool into_existing_graph) {
  graph_driver::Capture now;
  if (graph_driver::capture_of(stream, now) != CaptureStatus::active) return;
  const SpinGuard guard(g_lock);
  GraphId id = into_existing_graph ? g_graph.find(now.graph) : 0;
  if (id == 0) {
    id = create(now.graph);
    if (id == 0) return;
    if (into_existing_graph) g_model.graph(id).unseen |= kUnseenPart;
  }
  g_model.graph(id).capture = now.id;
  g_model.graph(id).origin = into_existing_graph ? nullptr : stream;
}

Ending ending(cudaStream_t stream) {
  graph_driver::Capture now;
  const bool active = graph_driver::capture_of(stream, now) == CaptureStatus::active;
  const SpinGuard guard(g_lock);
  GraphId id = active ? g_graph.find(now.graph) : 0;
  if (!active && stream != nullptr && stream != cudaStreamPerThread) {
    // Of an invalid capture the driver tells nothing.
    g_model.each_graph([&](GraphId at) {
      if (g_model.graph(at).origin == stream) id = at;
    });
  }
  return {id, id == 0 ? 0 : g_model.graph(id).life};
}

void ended(const Ending& ending, cudaGraph_t graph) {
  const SpinGuard guard(g_lock);
  const GraphId id = ending.graph;
  if (id == 0 || g_model.graph(id).life != ending.life) return;
  GraphInfo& info = g_model.graph(id);
  info.capture = 0;
  if (graph == nullptr && info.origin != nullptr) return destroy(id);
  // It was there before, and what of the capture it kept is not known.
  if (graph == nullptr) info.unseen |= kUnseenPart;
  info.origin = nullptr;
}

void created(cudaGraph_t graph) {
  const SpinGuard guard(g_lock);
  create(graph);
}

void cloned(cudaGraph_t clone, cudaGraph_t original) {
  const SpinGuard guard(g_lock);
  const GraphId from = g_graph.find(original);
  const GraphId id = executable_of(from);
  if (id != 0) name_copies(id, clone);
}

void copy_added(cudaGraph_t graph, cudaGraphNode_t node, const Call& copy) {
  const SpinGuard guard(g_lock);
  if (const GraphId id = g_graph.find(graph)) add_call(id, node, copy);
}

void child_added(cudaGraph_t graph, cudaGraphNode_t node, cudaGraph_t child, bool moved) {
  const SpinGuard guard(g_lock);
  const GraphId id = g_graph.find(graph);
  if (id == 0) return;
  GraphId inner = g_graph.find(child);
  if (!moved && inner != 0) {
    inner = g_model.copy(inner);
    if (inner != 0) name_copies(inner, graph_driver::child_of(node));
  } else if (inner != 0) {
    if (cudaGraph_t handle = graph_driver::child_of(node); handle != nullptr) {
      name(inner, handle);
    }
  }
  add_graph(id, Kind::child, node, inner);
}

void body_added(cudaGraph_t graph, cudaGraphNode_t node, cudaGraph_t body) {
  const SpinGuard guard(g_lock);
  if (const GraphId id = g_graph.find(graph)) add_graph(id, Kind::body, node, create(body));
}

void unknown_added(cudaGraph_t graph) {
  const SpinGuard guard(g_lock);
  if (const GraphId id = g_graph.find(graph)) g_model.graph(id).unseen |= kUnseenPart;
}

void child_changed(cudaGraphNode_t node) {
  const SpinGuard guard(g_lock);
  if (const std::uint32_t n = g_model.find_node(node)) {
    g_model.graph(g_model.node(n).graph).unseen |= kUnseenEdit;
  }
}

void copy_changed(cudaGraphNode_t node, const Call& copy) {
  const SpinGuard guard(g_lock);
  if (const std::uint32_t n = g_model.find_node(node)) {
    g_model.node(n).key = copy.key;
    g_model.node(n).count = copy.count;
    return;
  }
  unknown_copy_changed();
}

GraphId removing(cudaGraphNode_t node) {
  const bool no_copy = graph_driver::is_no_copy(node);
  const SpinGuard guard(g_lock);
  GraphId from = 0;
  // A conditional node has an entry for each of its bodies.
  while (const std::uint32_t n = g_model.find_node(node)) {
    GraphNode& gone = g_model.node(n);
    from = gone.graph;
    gone.kind = Kind::removed;
    if (gone.inner != 0) destroy(gone.inner);
    gone.inner = 0;
  }
  if (from == 0 && !no_copy) unknown_copy_changed();
  return from;
}

void not_removed(GraphId from) {
  const SpinGuard guard(g_lock);
  if (from != 0) g_model.graph(from).unseen |= kUnseenEdit;
}

void destroying(cudaGraph_t graph) {
  const SpinGuard guard(g_lock);
  if (const GraphId id = g_graph.find(graph)) destroy(id);
}

void instantiated(cudaGraphExec_t executable, cudaGraph_t graph, bool for_device) {
  const SpinGuard guard(g_lock);
  const GraphId id = executable_of(g_graph.find(graph));
  enter_executable(executable, id);
  if (!for_device || id == 0) return;
  std::size_t calls = 0;
  g_model.each_call(id, [&](const GraphNode&) { ++calls; });
  if (calls == 0) return;
  coverage::note(session::mapping().head(), Note::graph_device_launch, "cudaGraphInstantiate");
}

void updated(cudaGraphExec_t executable, cudaGraph_t graph) {
  const SpinGuard guard(g_lock);
  const GraphId before = g_executable.find(executable);
  if (before == 0) return;
  const GraphId id = executable_of(g_graph.find(graph));
  if (id == 0) return enter_executable(executable, 0);
  GraphInfo& info = g_model.graph(id);
  info.life = g_model.graph(before).life;
  // An update leaves disabled what was disabled. Which node of another graph stands for it is for
  // CUDA to know; so is from now on which one the old handles mean.
  g_model.each_node(before, [&](const GraphNode& node) {
    if (node.kind != Kind::call) return;
    const std::uint32_t n = g_model.find_node(id, node.handle);
    if (n == 0 && node.handle != nullptr) g_model.graph(id).unnamed = true;
    if (node.enabled) return;
    if (n == 0) {
      g_model.graph(id).unseen |= kUnseenEdit;
    } else {
      g_model.node(n).enabled = false;
    }
  });
  enter_executable(executable, id);
}

void copy_changed(cudaGraphExec_t executable, cudaGraphNode_t node, const Call& copy) {
  const SpinGuard guard(g_lock);
  if (const std::uint32_t n = changing(executable, node, true)) {
    g_model.node(n).key = copy.key;
    g_model.node(n).count = copy.count;
  }
}

void child_changed(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child) {
  const SpinGuard guard(g_lock);
  const std::uint32_t n = changing(executable, node, false);
  if (n == 0) {
    if (const GraphId id = g_executable.find(executable)) g_model.graph(id).unseen |= kUnseenEdit;
    return;
  }
  const GraphId inner = executable_of(g_graph.find(child));
  destroy(g_model.node(n).inner);
  g_model.node(n).inner = inner;
  if (inner == 0) {
    g_model.node(n).kind = Kind::removed;
    g_model.graph(g_model.node(n).graph).unseen |= kUnseenPart;
    return;
  }
  // Later changes name the nodes of the graph that the executable was made of.
  g_model.each_node(inner, [](GraphNode& at) { at.handle = nullptr; });
  g_model.graph(inner).unnamed = true;
}

void enabled(cudaGraphExec_t executable, cudaGraphNode_t node, bool on) {
  const SpinGuard guard(g_lock);
  if (const std::uint32_t n = changing(executable, node, false)) g_model.node(n).enabled = on;
}

void destroying(cudaGraphExec_t executable) {
  const SpinGuard guard(g_lock);
  enter_executable(executable, 0);
}

std::uint32_t launchable(Thread& t, cudaGraphExec_t executable) {
  if (const std::uint32_t known = g_launchable.find(executable)) return known;
  const SpinGuard guard(g_lock);
  std::uint32_t unseen = kUnseenPart;
  std::uint32_t index = 0;
  if (const GraphId id = g_executable.find(executable)) {
    index = graph_contents::entry_of(t, g_model, id, unseen);
    if (index == 0) unseen |= kUnseenPart;
  }
  note(unseen);
  if (index != 0) g_launchable.insert(executable, index);
  return index;
}

void forget_all() {
  g_graph.clear();
  g_executable.clear();
  g_launchable.clear();
  g_model.forget_all();
  graph_contents::forget_all();
  g_lock.unlock();
}

}  // namespace tprof::graphs
