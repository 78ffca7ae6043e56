// CUDA graphs, as the wrappers report them: what is captured, added by hand, cloned, nested,
// changed and removed, and what a launch executes.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "interpose/capture/thread.h"
#include "interpose/graphs/model.h"

namespace tprof::graphs {

// A capture has begun in this process at some time. Until then no call asks about captures.
extern std::atomic<bool> g_any_capture;

// The capture that a stream is in.
struct Capture {
  GraphId graph = 0;             // 0: none
  const void* before = nullptr;  // graph_driver::Capture::before
  explicit operator bool() const { return graph != 0; }
};
Capture capturing_slow(cudaStream_t stream);
inline Capture capturing(cudaStream_t stream) {
  return g_any_capture.load(std::memory_order_relaxed) ? capturing_slow(stream) : Capture{};
}

// A call as a launch will execute it.
struct Call {
  LedgerKey::Words key;
  std::uint64_t count;
};
// Captured, and accepted by the library.
void captured_call(GraphId graph, const Call& call);
void captured_alone(GraphId graph, const Call& call);  // the thread's last one, in no NCCL group
void captured_copy(const Capture& capture, cudaStream_t stream, const Call& copy);
void captured_launch(GraphId graph, cudaGraphExec_t executable);

// Around a capture. `ended`: `graph` is null where it failed.
struct Ending {
  GraphId graph;
  std::uint64_t life;
};
void began(cudaStream_t stream, bool into_existing_graph);
Ending ending(cudaStream_t stream);
void ended(const Ending& ending, cudaGraph_t graph);

// Graphs that are made by hand.
void created(cudaGraph_t graph);
void cloned(cudaGraph_t clone, cudaGraph_t original);
void copy_added(cudaGraph_t graph, cudaGraphNode_t node, const Call& copy);
void child_added(cudaGraph_t graph, cudaGraphNode_t node, cudaGraph_t child, bool moved);
void body_added(cudaGraph_t graph, cudaGraphNode_t node, cudaGraph_t body);
void unknown_added(cudaGraph_t graph);  // of a kind that is newer than we are
void copy_changed(cudaGraphNode_t node, const Call& copy);
void child_changed(cudaGraphNode_t node);
// Before the real call, since after it the handle can be another's.
GraphId removing(cudaGraphNode_t node);
void not_removed(GraphId from);
void destroying(cudaGraph_t graph);

// Executables, and changes in them.
void instantiated(cudaGraphExec_t executable, cudaGraph_t graph, bool for_device);
void updated(cudaGraphExec_t executable, cudaGraph_t graph);
void copy_changed(cudaGraphExec_t executable, cudaGraphNode_t node, const Call& copy);
void child_changed(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child);
void enabled(cudaGraphExec_t executable, cudaGraphNode_t node, bool on);
void destroying(cudaGraphExec_t executable);

// The mapped file's number of what a launch of `executable` executes; 0: not known, which the
// coverage then says.
std::uint32_t launchable(Thread& t, cudaGraphExec_t executable);

void forget_all();  // in the child of a fork

}  // namespace tprof::graphs
