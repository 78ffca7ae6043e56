// What graphs.h says of stream captures.
#include "interpose/driver/graphs.h"
#include "interpose/graphs/registry.h"

namespace tprof::graphs {

using graph_driver::CaptureStatus;

std::atomic<bool> g_any_capture{false};

namespace {

// A graph that a call is captured into, and that we could not note.
constexpr GraphId kUnknownGraph = UINT32_MAX;

// The node that a call put into the stream's capture, null if that is not known.
const void* added_since(const void* before, cudaStream_t stream) {
  graph_driver::Capture now{};
  const bool active = graph_driver::capture_of(stream, now) == CaptureStatus::active;
  return active && now.before != before ? now.before : nullptr;
}

}  // namespace

Capture capturing_slow(cudaStream_t stream) {
  graph_driver::Capture now;
  const CaptureStatus status = graph_driver::capture_of(stream, now);
  if (status == CaptureStatus::none) return {};
  // Refused, or without effect: there will be no graph.
  if (status == CaptureStatus::invalid) return {kUnknownGraph, nullptr};
  const LockGuard guard(g_lock);
  GraphId id = g_graphs.find(now.graph);
  if (id == 0 || g_graphs.model.graph(id).capture != now.id) {
    // Begun by a call that we did not see.
    id = g_graphs.create(now.graph);
    if (id == 0) return {kUnknownGraph, nullptr};
    g_graphs.model.graph(id).capture = now.id;
    g_graphs.model.graph(id).unseen |= kUnseenPart;
  }
  t_thread.captured_on = stream;
  t_thread.captured_before = now.before;
  return {id, now.before};
}

void captured_call(GraphId graph, const Call& call) {
  const LockGuard guard(g_lock);
  if (graph == kUnknownGraph) return;
  g_graphs.model.graph(graph).unnamed_nccl = true;
  add_call(graph, nullptr, call);
}

void captured_alone(GraphId graph, const Call& call) {
  const void* node = added_since(t_thread.captured_before, t_thread.captured_on);
  if (node == nullptr || graph_driver::kind_of(node) != graph_driver::NodeKind::kernel ||
      !graph_driver::may_be_nccl(node)) {
    return captured_call(graph, call);
  }
  const LockGuard guard(g_lock);
  if (graph != kUnknownGraph) add_call(graph, node, call);
}

void captured_copy(const Capture& capture, cudaStream_t stream, const Call& copy) {
  // A copy of nothing may have no node.
  const void* node = added_since(capture.before, stream);
  const LockGuard guard(g_lock);
  if (capture.graph == kUnknownGraph) return;
  if (node == nullptr && copy.count != 0) g_graphs.model.graph(capture.graph).unnamed = true;
  add_call(capture.graph, node, copy);
}

void captured_launch(GraphId graph, cudaGraphExec_t executable) {
  const LockGuard guard(g_lock);
  if (graph == kUnknownGraph) return;
  const GraphId inner = executable_of(g_executable.find(executable));
  if (inner != 0) forget_handles(inner);
  add_graph(graph, GraphNode::Kind::child, nullptr, inner);
  g_graphs.model.graph(graph).unnamed = true;
}

void began(cudaStream_t stream, bool into_existing_graph) {
  graph_driver::Capture now;
  if (graph_driver::capture_of(stream, now) != CaptureStatus::active) return;
  const LockGuard guard(g_lock);
  GraphId id = into_existing_graph ? g_graphs.find(now.graph) : 0;
  if (id == 0) {
    id = g_graphs.create(now.graph);
    if (id == 0) return;
    if (into_existing_graph) g_graphs.model.graph(id).unseen |= kUnseenPart;
  }
  g_graphs.model.graph(id).capture = now.id;
  g_graphs.model.graph(id).origin = into_existing_graph ? nullptr : stream;
}

Ending ending(cudaStream_t stream) {
  graph_driver::Capture now;
  const bool active = graph_driver::capture_of(stream, now) == CaptureStatus::active;
  const LockGuard guard(g_lock);
  GraphId id = active ? g_graphs.find(now.graph) : 0;
  if (!active && stream != nullptr && stream != cudaStreamPerThread) {
    // Of an invalid capture the driver tells nothing.
    g_graphs.model.each_graph([&](GraphId at) {
      if (g_graphs.model.graph(at).origin == stream) id = at;
    });
  }
  return {id, id == 0 ? 0 : g_graphs.model.graph(id).life};
}

void ended(const Ending& ending, cudaGraph_t graph) {
  const LockGuard guard(g_lock);
  const GraphId id = ending.graph;
  if (id == 0 || g_graphs.model.graph(id).life != ending.life) return;
  GraphInfo& info = g_graphs.model.graph(id);
  info.capture = 0;
  if (graph == nullptr && info.origin != nullptr) return g_graphs.destroy(id);
  // It was there before, and what of the capture it kept is not known.
  if (graph == nullptr) info.unseen |= kUnseenPart;
  info.origin = nullptr;
}

}  // namespace tprof::graphs
