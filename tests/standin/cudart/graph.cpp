// Stream capture and graphs.
#include "engine/graph.h"
#include "engine/capture.h"

#include "cudart/entry.h"
#include "engine/device.h"

using namespace standin;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return with_stream(stream, [&](CUstream_st& s) { return begin_capture(s, mode, nullptr); });
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* after, const cudaGraphEdgeData*,
                                          size_t count, cudaStreamCaptureMode mode) {
  if (!graph) return done(cudaErrorInvalidValue);
  return with_stream(stream, [&](CUstream_st& s) {
    const std::lock_guard lock(engine_mutex());
    const cudaError_t error = begin_capture(s, mode, graph);
    return error ? error : join_capture(s, s.capture, {after, after + count});
  });
}
// New in CUDA 13.3. The callback is never asked: every difference from the old graph is accepted.
struct cudaGraphRecaptureCallbackData;
cudaError_t cudaStreamBeginRecaptureToGraph(cudaStream_t, cudaStreamCaptureMode, cudaGraph_t,
                                            cudaGraphRecaptureCallbackData*);
cudaError_t cudaStreamBeginRecaptureToGraph(cudaStream_t stream, cudaStreamCaptureMode mode,
                                            cudaGraph_t graph, cudaGraphRecaptureCallbackData*) {
  if (!graph) return done(cudaErrorInvalidValue);
  return with_stream(stream, [&](CUstream_st& s) { return begin_recapture(s, mode, graph); });
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData*, size_t count,
                                                unsigned flags) {
  return with_stream(stream, [&](CUstream_st& s) {
    const std::lock_guard lock(engine_mutex());
    if (!s.capture) return cudaErrorIllegalState;
    if (flags == cudaStreamSetCaptureDependencies) s.frontier.clear();
    return join_capture(s, s.capture, {nodes, nodes + count});
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return with_stream(stream, [&](CUstream_st& s) { return end_capture(s, graph); });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return with_stream(stream, [&](CUstream_st& s) {
    const std::lock_guard lock(engine_mutex());
    *status = !s.capture               ? cudaStreamCaptureStatusNone
              : s.capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** after, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  return with_stream(stream, [&](CUstream_st& s) {
    const std::lock_guard lock(engine_mutex());
    *status = !s.capture               ? cudaStreamCaptureStatusNone
              : s.capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
    if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
    if (id) *id = s.capture->id;
    if (graph) *graph = s.capture->graph;
    if (after) *after = s.frontier.data();
    if (edges) *edges = nullptr;
    if (count) *count = s.frontier.size();
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_capture_mode());
  return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  if (!graph) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  *clone = clone_graph(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                          unsigned long long) {
  if (!out || !graph) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  auto* exec = new CUgraphExec_st;
  exec->graph = clone_graph(*graph);
  lay_out(*exec, current_device());
  *out = exec;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph,
                                 unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(out, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* out, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  parameters->result_out = cudaGraphInstantiateSuccess;
  parameters->errNode_out = nullptr;
  return cudaGraphInstantiateWithFlags(out, graph, parameters->flags);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  if (!exec || !graph) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  *result = {};
  if (!copy_parameters(*exec->graph, *graph)) {
    result->result = cudaGraphExecUpdateErrorTopologyChanged;
    return done(cudaErrorGraphExecUpdateFailure);
  }
  lay_out(*exec, current_device());
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  if (!exec) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  for (const StreamRef& lane : exec->lanes) {
    if (lane) destroy_stream(lane.get());
  }
  delete exec->graph;
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec) return done(cudaErrorInvalidValue);
  return with_stream(stream, [](CUstream_st&) { return cudaSuccess; });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec) return done(cudaErrorInvalidValue);
  return with_stream(stream, [&](CUstream_st& s) { return launch_graph(*exec, s); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (!graph || !count) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  if (nodes) {
    for (size_t i = 0; i < *count; ++i) {
      nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
    }
  }
  if (!nodes || *count > graph->nodes.size()) *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* after,
                                         cudaGraphEdgeData* edges, size_t* count) {
  if (!node || !count) return done(cudaErrorInvalidValue);
  const std::lock_guard lock(engine_mutex());
  for (size_t i = 0; after && i < *count; ++i) {
    after[i] = i < node->after.size() ? node->after[i] : nullptr;
    if (edges) edges[i] = {};
  }
  if (!after || *count > node->after.size()) *count = node->after.size();
  return cudaSuccess;
}

}  // extern "C"
