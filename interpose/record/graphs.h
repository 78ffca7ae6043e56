// CUDA graphs, as the wrappers report them: what was captured, what an executable holds when it is
// instantiated, and what a launch of it executes.
//
// The nodes of a graph are looked at when it is instantiated, and when an executable is updated
// from it. Changes by hand of nodes that were captured or instantiated are not followed, but
// reported (hook/uncounted.cpp).
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

// A call as a launch will execute it. `count` is the API's; for copies it is bytes.
struct Call {
  LedgerKey::Words key;
  std::uint64_t count;
};

// A call was captured, and accepted by the library.
void captured_call(cudaGraph_t graph, const Call& call);

// A capture has begun on `stream`. Unless `into_existing_graph`, what was in the graph before is
// gone.
void capture_began(Thread& t, cudaStream_t stream, bool into_existing_graph);
// The capture that began on `stream` has ended. If it failed (not `made`), its graph is gone, and
// another graph can get its handle.
void capture_ended(Thread& t, cudaStream_t stream, bool made);
// Call this before the real call, since after it another graph can get the handle.
void destroying(cudaGraph_t graph);

// Executables.
void instantiated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph, bool for_device);
void updated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph);
void destroying(cudaGraphExec_t executable);

// Returns the mapped file's number for what a launch of `executable` executes. 0: not known. The
// coverage tells what is not counted of it.
std::uint32_t launchable(cudaGraphExec_t executable);

void forget_all();  // in the child of a fork

}  // namespace tprof::graphs
