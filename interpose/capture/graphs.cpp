#include "graphs.h"

#include "clock.h"
#include "handle_map.h"
#include "interpose/resolve/resolve.h"
#include "tables.h"

namespace tprof::graphs {

std::atomic<bool> g_any_capture{false};

namespace {

HandleMap<4096> g_captured;    // cudaGraph_t
HandleMap<4096> g_executable;  // cudaGraphExec_t

// Captures that are going on: CUDA's number of the capture -> our graph.
struct Capture {
  std::uint64_t id;
  std::uint32_t graph;
};
constexpr std::uint32_t kMaxCaptures = 64;
Capture g_capture[kMaxCaptures];
std::uint32_t g_captures;
SpinLock g_lock;

std::uint32_t new_graph(GraphKind kind, std::uint32_t source, bool complete) {
  Graph entry{};
  entry.kind = kind;
  entry.source = source;
  entry.made_ns = now_ns();
  entry.complete.store(complete ? 1 : 0, std::memory_order_relaxed);
  return tables::append(session::mapping().head().graphs, entry, [](std::uint32_t) {});
}

// CUDA's number of the capture that `stream` is in, 0 if it is in none. The driver entry without
// a suffix has had these three arguments since CUDA 10.1.
std::uint64_t capture_id(cudaStream_t stream) {
  using Query = int (*)(cudaStream_t, int*, std::uint64_t*);
  static std::atomic<Query> query{nullptr};
  Query ask = query.load(std::memory_order_acquire);
  if (ask == nullptr) {
    ask = reinterpret_cast<Query>(resolve::mapped("libcuda.so.1", "cuStreamGetCaptureInfo"));
    if (ask == nullptr) return 0;
    query.store(ask, std::memory_order_release);
  }
  int status = 0;
  std::uint64_t id = 0;
  constexpr int kActive = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE
  // An error is what the legacy stream gives while another one captures: not ours to record.
  return ask(stream, &status, &id) == 0 && status == kActive ? id : 0;
}

std::uint32_t graph_of_capture(std::uint64_t id) {
  const SpinGuard guard(g_lock);
  for (std::uint32_t i = 0; i < g_captures; ++i) {
    if (g_capture[i].id == id) return g_capture[i].graph;
  }
  if (g_captures == kMaxCaptures) return 0;
  const std::uint32_t graph = new_graph(GraphKind::captured, 0, false);
  g_capture[g_captures++] = {id, graph};
  return graph;
}

void forget_capture(std::uint32_t graph) {
  const SpinGuard guard(g_lock);
  for (std::uint32_t i = 0; i < g_captures; ++i) {
    if (g_capture[i].graph == graph) g_capture[i--] = g_capture[--g_captures];
  }
}

}  // namespace

std::uint32_t capturing_slow(cudaStream_t stream) {
  const std::uint64_t id = capture_id(stream);
  return id == 0 ? 0 : graph_of_capture(id);
}

std::uint32_t ending(cudaStream_t stream) {
  return capturing_slow(stream);
}

void ended(std::uint32_t captured, cudaGraph_t graph) {
  if (captured == 0) return;
  forget_capture(captured);
  auto* entry = const_cast<Graph*>(session::mapping().view().graph(captured));
  if (entry != nullptr) entry->complete.store(1, std::memory_order_release);
  if (graph != nullptr) g_captured.insert(graph, captured);
}

void instantiated(cudaGraphExec_t handle, cudaGraph_t graph) {
  const std::uint32_t index = new_graph(GraphKind::executable, g_captured.find(graph), true);
  if (index != 0) g_executable.insert(handle, index);
}

std::uint32_t executable(cudaGraphExec_t handle) {
  return g_executable.find(handle);
}
void destroyed(cudaGraph_t graph) {
  g_captured.erase(graph);
}
void destroyed(cudaGraphExec_t handle) {
  g_executable.erase(handle);
}

void forget_all() {
  g_captured.clear();
  g_executable.clear();
  g_lock.unlock();
  g_captures = 0;
}

}  // namespace tprof::graphs
