// Events.
#include "engine/event.h"

#include "cudart/entry.h"
#include "engine/device.h"

using namespace standin;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  if (!out) return done(cudaErrorInvalidValue);
  use_context(current_device());
  *out = create_event(current_device(), flags);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return cudaEventCreateWithFlags(out, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return done(destroy_event(event));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return with_stream(stream, [&](CUstream_st& s) { return record_event(event, s); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return with_stream(stream, [&](CUstream_st& s) { return wait_event(s, event); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return done(query_event(event));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return done(synchronize_event(event));
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return done(elapsed(milliseconds, start, end));
}

}  // extern "C"
