#include "engine/capture.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "engine/graph.h"

namespace standin {
namespace {

// Those that run. Leaked on purpose: the program's threads outlive static destructors.
std::set<std::shared_ptr<Capture>>& captures() {
  static auto& all = *new std::set<std::shared_ptr<Capture>>;
  return all;
}

}  // namespace

cudaError_t join_capture(CUstream_st& stream, const std::shared_ptr<Capture>& capture,
                         const std::vector<cudaGraphNode_t>& nodes) {
  const std::lock_guard lock(engine_mutex());
  if (!stream.capture) {
    stream.capture = capture;
    stream.frontier.clear();
    stream.lane = capture->lanes++;
  }
  if (stream.capture != capture) return cudaErrorStreamCaptureMerge;
  for (cudaGraphNode_t node : nodes) {
    if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end()) {
      stream.frontier.push_back(node);
    }
  }
  return cudaSuccess;
}

cudaError_t begin_capture(CUstream_st& stream, cudaStreamCaptureMode mode, cudaGraph_t into) {
  const std::lock_guard lock(engine_mutex());
  if (is_legacy(stream)) return cudaErrorStreamCaptureUnsupported;
  if (stream.capture) return cudaErrorIllegalState;
  static unsigned long long last_id = 0;
  stream.capture = std::make_shared<Capture>(Capture{
      .id = ++last_id,
      .mode = mode,
      .origin = &stream,
      .graph = into ? into : new CUgraph_st,
      .owns_graph = !into,
      .thread = static_cast<uint32_t>(gettid()),
  });
  stream.frontier.clear();
  stream.lane = 0;
  captures().insert(stream.capture);
  return cudaSuccess;
}

cudaError_t begin_recapture(CUstream_st& stream, cudaStreamCaptureMode mode, cudaGraph_t into) {
  const cudaError_t error = begin_capture(stream, mode, into);
  if (error) return error;
  const std::lock_guard lock(engine_mutex());
  into->nodes.clear();
  return cudaSuccess;
}

cudaError_t end_capture(CUstream_st& stream, cudaGraph_t* graph) {
  const std::lock_guard lock(engine_mutex());
  *graph = nullptr;
  const auto capture = stream.capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != &stream) return cudaErrorStreamCaptureUnmatched;
  // A forked stream whose last work nobody waits for was not joined.
  std::set<cudaGraphNode_t> joined;
  for (const auto& node : capture->graph->nodes)
    joined.insert(node->after.begin(), node->after.end());
  joined.insert(stream.frontier.begin(), stream.frontier.end());
  bool unjoined = false;
  for (const StreamRef& other : all_streams()) {
    if (other->capture != capture) continue;
    for (cudaGraphNode_t node : other->frontier) unjoined |= !joined.contains(node);
    other->capture = nullptr;
    other->frontier.clear();
  }
  captures().erase(capture);
  cudaGraph_t made = capture->graph;
  capture->graph = nullptr;
  if (unjoined || capture->invalidated) {
    if (capture->owns_graph) delete made;
    return capture->invalidated ? cudaErrorStreamCaptureInvalidated
                                : cudaErrorStreamCaptureUnjoined;
  }
  *graph = made;
  return cudaSuccess;
}

cudaStreamCaptureMode& thread_capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

cudaError_t check_not_capturing(CUstream_st* stream) {
  const std::lock_guard lock(engine_mutex());
  if (stream && stream->capture) {
    stream->capture->invalidated = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  const cudaStreamCaptureMode mine = thread_capture_mode();
  if (mine == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& capture : captures()) {
    const bool own = capture->thread == static_cast<uint32_t>(gettid());
    const bool forbids =
        (own && capture->mode != cudaStreamCaptureModeRelaxed) ||
        (mine == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal);
    if (!forbids) continue;
    capture->invalidated = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

}  // namespace standin
