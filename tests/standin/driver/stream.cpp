// Streams, events and captures.
#include <algorithm>

#include "driver/entry.h"
#include "engine/capture.h"
#include "engine/device.h"
#include "engine/event.h"

using namespace standin;

extern "C" {

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  *out = create_stream(current_device(), flags, std::clamp(priority, -5, 0)).get();
  return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  return cuStreamCreateWithPriority(out, flags, 0);
}
CUresult cuStreamDestroy(CUstream stream) {
  return destroy_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamSynchronize(CUstream stream) {
  return with_stream(stream, [](CUstream_st& s) {
    if (const cudaError_t error = check_not_capturing(&s)) return error;
    if (const Mark tail = tail_of(s)) tail->wait();
    return device_error();
  });
}
CUresult cuStreamQuery(CUstream stream) {
  return with_stream(stream, [](CUstream_st& s) {
    if (const cudaError_t error = check_not_capturing(&s)) return error;
    const Mark tail = tail_of(s);
    return tail && !tail->done() ? cudaErrorNotReady : device_error();
  });
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return with_stream(stream, [&](CUstream_st& s) { return wait_event(s, event); });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** after,
                                   const CUgraphEdgeData** edges, size_t* count) {
  return with_stream(stream, [&](CUstream_st& s) {
    const std::lock_guard lock(engine_mutex());
    *status = !s.capture               ? CU_STREAM_CAPTURE_STATUS_NONE
              : s.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return cudaSuccess;
    if (id) *id = s.capture->id;
    if (graph) *graph = s.capture->graph;
    if (after) *after = s.frontier.data();
    if (edges) *edges = nullptr;
    if (count) *count = s.frontier.size();
    return cudaSuccess;
  });
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** after, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, nullptr, count);
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return cuStreamGetCaptureInfo(stream, status, nullptr);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  const auto mine = thread_capture_mode();
  thread_capture_mode() = static_cast<cudaStreamCaptureMode>(*mode);
  *mode = static_cast<CUstreamCaptureMode>(mine);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* out, unsigned flags) {
  *out = create_event(current_device(), flags);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  return as_driver(destroy_event(event));
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return with_stream(stream, [&](CUstream_st& s) { return record_event(event, s); });
}
CUresult cuEventQuery(CUevent event) {
  return as_driver(query_event(event));
}
CUresult cuEventSynchronize(CUevent event) {
  return as_driver(synchronize_event(event));
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return as_driver(elapsed(milliseconds, start, end));
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

}  // extern "C"
