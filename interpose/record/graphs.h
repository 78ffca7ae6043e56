// CUDA graphs, as reported by the wrappers: captured calls, the contents of instantiated graphs,
// and what a launch executes.
//
// A graph's nodes are read when it is instantiated, and when an executable graph is updated from
// it. Direct changes of captured or instantiated nodes are not followed, but reported
// (hook/uncounted.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "interpose/record/switches.h"
#include "interpose/record/thread.h"

namespace tprof::graphs {

// Returns the graph that a stream captures into, or null if it captures into none.
cudaGraph_t captured_into_slow(cudaStream_t stream);
inline cudaGraph_t captured_into(cudaStream_t stream) {
  return g_switches.captures.load(std::memory_order_relaxed) ? captured_into_slow(stream) : nullptr;
}

// A call that a launch will execute. `count` is the API's; bytes for copies.
struct Call {
  LedgerKey::Words key;
  std::uint64_t count;
};

// Records a captured call that the library accepted.
void captured_call(cudaGraph_t graph, const Call& call);

// A capture has begun on `stream`, into a new graph unless `into_existing_graph`.
void capture_began(Thread& t, cudaStream_t stream, bool into_existing_graph);
// The capture that began on `stream` has ended. If it failed (not `made`), its graph is gone and
// its handle may be used again.
void capture_ended(Thread& t, cudaStream_t stream, bool made);
// Call this before the real call: after it another graph may get the handle.
void destroying(cudaGraph_t graph);

// Executable graphs.
void instantiated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph, bool for_device);
void updated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph);
void destroying(cudaGraphExec_t executable);

// Returns the mapped file's number for what a launch of `executable` executes. 0: not known. The
// coverage reports what is not counted.
std::uint32_t launchable(cudaGraphExec_t executable);

void forget_all();  // in the child of a fork

}  // namespace tprof::graphs
