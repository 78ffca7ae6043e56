// Stream capture: work that is submitted to a stream becomes nodes of a graph.
#pragma once

#include "engine/stream.h"

namespace standin {

// `into`: an existing graph, or null for a new one.
cudaError_t begin_capture(CUstream_st& stream, cudaStreamCaptureMode mode, cudaGraph_t into);
// Captures anew: the nodes in the graph are removed first.
cudaError_t begin_recapture(CUstream_st& stream, cudaStreamCaptureMode mode, cudaGraph_t into);
// Puts the stream's next captured work after `nodes` too. A stream that is in no capture joins it.
cudaError_t join_capture(CUstream_st& stream, const std::shared_ptr<Capture>& capture,
                         const std::vector<cudaGraphNode_t>& nodes);
cudaError_t end_capture(CUstream_st& stream, cudaGraph_t* graph);
// Returns cudaSuccess, or why a call that could block or allocate is not allowed now. It then also
// invalidates the capture, as the real one does.
cudaError_t check_not_capturing(CUstream_st* stream);
cudaStreamCaptureMode& thread_capture_mode();

}  // namespace standin
