#include "interpose/record/graph_captures.h"

#include "interpose/real/driver_graphs.h"

namespace tprof::graphs {

using graph_driver::NodeKind;

Lock g_lock{LockOrder::graphs};

namespace {

struct CapturedGraph {
  cudaGraph_t handle;         // null: the place is free
  std::uint32_t first, last;  // calls, 1-based
  const void* captured_on;    // where the capture that makes this graph began, while it goes on
  bool seen_from_start;
};

Pages<CapturedGraph> g_graphs;
Pages<CapturedCall> g_calls;
std::uint32_t g_free_call = 0;  // a free list, linked by `next`

CapturedCall& call_at(std::uint32_t place) {
  return g_calls.data()[place - 1];
}

// Null: it is not there. `handle` null: a free place. The last ones are asked for most.
CapturedGraph* find(cudaGraph_t handle) {
  for (std::size_t i = g_graphs.size(); i-- != 0;) {
    if (g_graphs.data()[i].handle == handle) return &g_graphs.data()[i];
  }
  return nullptr;
}

// Null: no memory.
CapturedGraph* graph_of(cudaGraph_t handle) {
  if (CapturedGraph* known = find(handle)) return known;
  CapturedGraph* place = find(nullptr);
  if (place == nullptr) {
    g_graphs.push_back({});
    if (g_graphs.failed()) return nullptr;
    place = g_graphs.end() - 1;
  }
  place->handle = handle;
  return place;
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
  const void* last = nullptr;
  graph_driver::captured_into(stream, last);
  return graph_driver::kind_of(last) == NodeKind::copy ? last : nullptr;
}

}  // namespace

cudaGraph_t captured_into_slow(cudaStream_t stream) {
  const void* last = nullptr;
  return graph_driver::captured_into(stream, last);
}

void captured_call(cudaGraph_t graph, cudaStream_t stream, const Call& call) {
  if (graph == graph_driver::kNoGraph) return;
  CapturedCall captured{call, nullptr, 0};
  if (is_copy(captured)) captured.node = copy_made_on(stream);
  const LockGuard guard(g_lock);
  if (CapturedGraph* into = graph_of(graph)) add(*into, captured);
}

void capture_began(Thread& t, cudaStream_t stream, bool into_existing_graph) {
  cudaGraph_t handle = into_existing_graph ? nullptr : captured_into_slow(stream);
  if (handle == nullptr || handle == graph_driver::kNoGraph) return;
  const LockGuard guard(g_lock);
  CapturedGraph* graph = graph_of(handle);
  if (graph == nullptr) return;
  // An earlier graph of this handle may have been destroyed without our seeing.
  forget_calls(*graph);
  graph->seen_from_start = true;
  graph->captured_on = origin(t, stream);
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
  CapturedGraph* known = graph == nullptr ? nullptr : find(graph);
  if (known == nullptr) return;
  forget_calls(*known);
  *known = {};
}

bool captured_calls(cudaGraph_t graph, Pages<CapturedCall>& calls) {
  const LockGuard guard(g_lock);
  const CapturedGraph* known = find(graph);
  if (graph == nullptr || known == nullptr) return false;
  for (std::uint32_t n = known->first; n != 0; n = call_at(n).next) calls.push_back(call_at(n));
  return known->seen_from_start && !calls.failed();
}

void forget_captures() {
  g_graphs.release();
  g_calls.release();
  g_free_call = 0;
}

}  // namespace tprof::graphs
