#include "interpose/graphs/captures.h"

#include "interpose/base/shared_map.h"
#include "interpose/driver/graphs.h"

namespace tprof::graphs {

using graph_driver::NodeKind;

std::atomic<bool> g_any_capture{false};
Lock g_lock{LockOrder::graphs};

namespace {

struct CapturedGraph {
  std::uint32_t first, last;  // calls, 1-based
  const void* captured_on;    // where the capture that makes this graph began, while it goes on
  bool seen_from_start;
};

// Maps a cudaGraph_t to its place in g_graphs, 1-based.
constinit SharedMap<std::uint32_t> g_index{LockOrder::handles};
Pages<CapturedGraph> g_graphs;
Pages<CapturedCall> g_calls;
std::uint32_t g_free_graph = 0;  // a free list, linked by `first`
std::uint32_t g_free_call = 0;   // a free list, linked by `next`

CapturedGraph& graph_at(std::uint32_t place) {
  return g_graphs.data()[place - 1];
}
CapturedCall& call_at(std::uint32_t place) {
  return g_calls.data()[place - 1];
}

// Places are made and given back under g_lock. 0: no memory.
std::uint32_t place_of(cudaGraph_t graph) {
  if (const std::uint32_t known = g_index.find(graph)) return known;
  std::uint32_t place = g_free_graph;
  if (place != 0) {
    g_free_graph = graph_at(place).first;
  } else {
    g_graphs.push_back({});
    if (g_graphs.failed()) return 0;
    place = static_cast<std::uint32_t>(g_graphs.size());
  }
  graph_at(place) = {};
  if (g_index.insert(graph, place)) return place;
  graph_at(place).first = g_free_graph;
  g_free_graph = place;
  return 0;
}

void forget_calls(CapturedGraph& graph) {
  if (graph.last == 0) return;
  call_at(graph.last).next = g_free_call;
  g_free_call = graph.first;
  graph.first = graph.last = 0;
}

// All threads use one handle for their per-thread streams, so the thread itself stands for its
// stream.
const void* origin(const Thread& t, cudaStream_t stream) {
  return stream == cudaStreamPerThread ? static_cast<const void*>(&t) : stream;
}

void add(CapturedGraph& graph, const CapturedCall& call) {
  std::uint32_t place = g_free_call;
  if (place != 0) {
    g_free_call = call_at(place).next;
    call_at(place) = call;
  } else {
    g_calls.push_back(call);
    if (g_calls.failed()) {
      graph.seen_from_start = false;
      return;
    }
    place = static_cast<std::uint32_t>(g_calls.size());
  }
  (graph.last == 0 ? graph.first : call_at(graph.last).next) = place;
  graph.last = place;
}

// Returns the copy that the stream's next node comes after. Null: it is no copy, or there are
// several nodes.
const void* copy_made_on(cudaStream_t stream) {
  graph_driver::Capture now{};
  if (graph_driver::capture_of(stream, now) != graph_driver::CaptureStatus::active) return nullptr;
  return graph_driver::kind_of(now.last_node) == NodeKind::copy ? now.last_node : nullptr;
}

}  // namespace

cudaGraph_t captured_into_slow(cudaStream_t stream) {
  graph_driver::Capture now{};
  switch (graph_driver::capture_of(stream, now)) {
    case graph_driver::CaptureStatus::none:
      return nullptr;
    case graph_driver::CaptureStatus::invalid:
      return graph_driver::kNoGraph;
    case graph_driver::CaptureStatus::active:
      break;
  }
  return now.graph;
}

void captured_call(cudaGraph_t graph, cudaStream_t stream, const Call& call) {
  if (graph == graph_driver::kNoGraph) return;
  CapturedCall captured{call, nullptr, 0};
  if (is_copy(captured)) captured.node = copy_made_on(stream);
  const LockGuard guard(g_lock);
  if (const std::uint32_t place = place_of(graph)) add(graph_at(place), captured);
}

void capture_began(Thread& t, cudaStream_t stream, bool into_existing_graph) {
  graph_driver::Capture now{};
  if (into_existing_graph) return;
  if (graph_driver::capture_of(stream, now) != graph_driver::CaptureStatus::active) return;
  const LockGuard guard(g_lock);
  const std::uint32_t place = place_of(now.graph);
  if (place == 0) return;
  // An earlier graph of this handle may have been destroyed without our seeing.
  forget_calls(graph_at(place));
  graph_at(place).seen_from_start = true;
  graph_at(place).captured_on = origin(t, stream);
}

void capture_ended(Thread& t, cudaStream_t stream, bool made) {
  const void* began_on = origin(t, stream);
  if (began_on == nullptr) return;  // the legacy stream can't be captured
  const LockGuard guard(g_lock);
  for (CapturedGraph& graph : g_graphs) {
    if (graph.captured_on != began_on) continue;
    graph.captured_on = nullptr;
    if (made) continue;
    forget_calls(graph);
    graph.seen_from_start = false;
  }
}

void destroying(cudaGraph_t graph) {
  const LockGuard guard(g_lock);
  const std::uint32_t place = g_index.find(graph);
  if (place == 0) return;
  g_index.erase(graph);
  forget_calls(graph_at(place));
  graph_at(place).captured_on = nullptr;
  graph_at(place).first = g_free_graph;
  g_free_graph = place;
}

bool captured_calls(cudaGraph_t graph, Pages<CapturedCall>& calls) {
  const LockGuard guard(g_lock);
  const std::uint32_t place = g_index.find(graph);
  if (place == 0) return false;
  for (std::uint32_t n = graph_at(place).first; n != 0; n = call_at(n).next) {
    calls.push_back(call_at(n));
  }
  return graph_at(place).seen_from_start && !calls.failed();
}

void forget_captures() {
  g_index.clear();
  g_graphs.release();
  g_calls.release();
  g_free_graph = g_free_call = 0;
}

}  // namespace tprof::graphs
