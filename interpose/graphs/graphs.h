// CUDA graphs, as the wrappers report them: what was captured, what an executable holds when it is
// instantiated, and what a launch of it executes.
//
// There is one truth about what is in a graph: the driver's answer when the graph is instantiated
// or an executable is updated from it, explained by the calls that were captured before our eyes
// (scan.h). What a program changes by hand in an executable is not followed: it is said.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "interpose/driver/copy_args.h"
#include "interpose/thread/thread.h"

namespace tprof::graphs {

// A capture has begun in this process at some time. Until then no call asks about captures.
extern std::atomic<bool> g_any_capture;

// The graph that a stream captures into, null where it captures into none.
cudaGraph_t captured_into_slow(cudaStream_t stream);
inline cudaGraph_t captured_into(cudaStream_t stream) {
  return g_any_capture.load(std::memory_order_relaxed) ? captured_into_slow(stream) : nullptr;
}

// A call as a launch will execute it. `count`: the API's; copies: bytes.
struct Call {
  LedgerKey::Words key;
  std::uint64_t count;
};

// How a call lies in its graph. `one_node`: the call is one node, which holds nothing else. A group
// of NCCL calls is one kernel, and so may be a batch of copies be one node.
enum class Placed : std::uint8_t { one_node, shared_node };
// A call was captured on `stream`, and accepted by the library.
void captured_call(cudaGraph_t graph, cudaStream_t stream, const Call& call, Placed placed);

// A capture has begun on `stream`. What was in the graph before is gone but `into_existing_graph`.
void capture_began(Thread& t, cudaStream_t stream, bool into_existing_graph);
// The capture that began on `stream` has ended. Where it failed (not `made`) its graph is gone, and
// its handle can be another's.
void capture_ended(Thread& t, cudaStream_t stream, bool made);
// Before the real call, since after it the handle can be another's.
void destroying(cudaGraph_t graph);

// Executables.
void instantiated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph, bool for_device);
void updated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph);
void destroying(cudaGraphExec_t executable);

// Whether a change by hand of `node` in an executable changes what is counted.
bool is_counted(cudaGraphNode_t node);
bool copies_otherwise(cudaGraphNode_t node, const CopyArgs& copy);
void say_edited(std::string_view function);

// The mapped file's number of what a launch of `executable` executes; 0: not known. What of it is
// not counted goes into the coverage.
std::uint32_t launchable(cudaGraphExec_t executable);

void forget_all();  // in the child of a fork

}  // namespace tprof::graphs
