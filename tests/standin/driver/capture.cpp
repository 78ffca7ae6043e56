// Stream capture and graphs, as far as a runtime that is linked in needs them.
#include "engine/capture.h"
#include "engine/graph.h"

#include "driver/entry.h"
#include "engine/device.h"

using namespace standin;

namespace {

CUresult begin(CUstream stream, CUstreamCaptureMode mode) {
  return with_stream(stream, [&](CUstream_st& s) {
    return begin_capture(s, static_cast<cudaStreamCaptureMode>(mode), nullptr);
  });
}
CUresult begin_again(CUstream stream, CUstreamCaptureMode mode, CUgraph graph) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(stream, [&](CUstream_st& s) {
    return begin_recapture(s, static_cast<cudaStreamCaptureMode>(mode), graph);
  });
}
CUresult end(CUstream stream, CUgraph* graph) {
  return with_stream(stream, [&](CUstream_st& s) { return end_capture(s, graph); });
}
CUresult launch(CUgraphExec exec, CUstream stream) {
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(stream, [&](CUstream_st& s) { return launch_graph(*exec, s); });
}
// Returns the stream that a twin means.
CUstream own(CUstream stream) {
  return stream ? stream : cudaStreamPerThread;
}

}  // namespace

STANDIN_ENTRY(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
              begin(stream, mode))
STANDIN_ENTRY(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode),
              begin(own(stream), mode))
STANDIN_ENTRY(cuStreamBeginRecaptureToGraph,
              (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void*, void*),
              begin_again(stream, mode, graph))
STANDIN_ENTRY(cuStreamBeginRecaptureToGraph_ptsz,
              (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void*, void*),
              begin_again(own(stream), mode, graph))
STANDIN_ENTRY(cuStreamEndCapture, (CUstream stream, CUgraph* graph), end(stream, graph))
STANDIN_ENTRY(cuStreamEndCapture_ptsz, (CUstream stream, CUgraph* graph), end(own(stream), graph))
STANDIN_ENTRY(cuGraphLaunch, (CUgraphExec exec, CUstream stream), launch(exec, stream))
STANDIN_ENTRY(cuGraphLaunch_ptsz, (CUgraphExec exec, CUstream stream), launch(exec, own(stream)))

extern "C" {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  if (!out || !graph) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(engine_mutex());
  auto* exec = new CUgraphExec_st;
  exec->graph = clone_graph(*graph);
  lay_out(*exec, current_device());
  *out = exec;
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(engine_mutex());
  delete graph;
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(engine_mutex());
  for (const StreamRef& lane : exec->lanes) {
    if (lane) destroy_stream(lane.get());
  }
  delete exec->graph;
  delete exec;
  return CUDA_SUCCESS;
}

}  // extern "C"

namespace {
#define GIVEN(function) \
  const EntryPoint given_##function{#function, reinterpret_cast<void*>(&function)};
GIVEN(cuGraphInstantiateWithFlags)
GIVEN(cuGraphDestroy)
GIVEN(cuGraphExecDestroy)
}  // namespace
