#include "engine/event.h"

#include <set>

#include "engine/capture.h"

namespace standin {
namespace {

// Guarded by engine_mutex().
std::set<cudaEvent_t>& events() {
  static auto& all = *new std::set<cudaEvent_t>;
  return all;
}

bool valid(cudaEvent_t event) {
  return event && events().contains(event);
}

// Finds the marker to wait for. The waiter shares it, so the event may be destroyed meanwhile.
cudaError_t mark_of(cudaEvent_t event, Mark* mark) {
  const std::lock_guard lock(engine_mutex());
  if (!valid(event)) return cudaErrorInvalidResourceHandle;
  if (event->capture && event->capture->graph) {
    event->capture->invalidated = true;
    return cudaErrorCapturedEvent;
  }
  *mark = event->mark;
  return check_not_capturing(nullptr);
}

}  // namespace

cudaEvent_t create_event(int device, unsigned flags) {
  const std::lock_guard lock(engine_mutex());
  auto* event = new CUevent_st{.flags = flags, .device = device};
  events().insert(event);
  return event;
}

cudaError_t destroy_event(cudaEvent_t event) {
  const std::lock_guard lock(engine_mutex());
  if (events().erase(event) == 0) return cudaErrorInvalidResourceHandle;
  delete event;
  return cudaSuccess;
}

cudaError_t record_event(cudaEvent_t event, CUstream_st& stream) {
  const std::lock_guard lock(engine_mutex());
  if (!valid(event)) return cudaErrorInvalidResourceHandle;
  event->capture = stream.capture;
  event->captured = stream.capture ? stream.frontier : std::vector<cudaGraphNode_t>{};
  event->mark = stream.capture ? nullptr : submit(stream, {});
  return cudaSuccess;
}

cudaError_t wait_event(CUstream_st& stream, cudaEvent_t event) {
  const std::lock_guard lock(engine_mutex());
  if (!valid(event)) return cudaErrorInvalidResourceHandle;
  if (!event->capture) {
    if (stream.capture) return cudaErrorStreamCaptureIsolation;
    if (event->mark && !event->mark->done()) submit(stream, {.after = {event->mark}});
    return cudaSuccess;
  }
  if (!event->capture->graph) return cudaSuccess;  // that capture has ended
  return join_capture(stream, event->capture, event->captured);
}

cudaError_t query_event(cudaEvent_t event) {
  Mark mark;
  if (const cudaError_t error = mark_of(event, &mark)) return error;
  return mark && !mark->done() ? cudaErrorNotReady : device_error();
}

cudaError_t synchronize_event(cudaEvent_t event) {
  Mark mark;
  if (const cudaError_t error = mark_of(event, &mark)) return error;
  if (mark) mark->wait();
  return device_error();
}

cudaError_t elapsed(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Mark from, to;
  if (const cudaError_t error = mark_of(start, &from)) return error;
  if (const cudaError_t error = mark_of(end, &to)) return error;
  const bool timed = !((start->flags | end->flags) & cudaEventDisableTiming);
  if (!timed || !from || !to) return cudaErrorInvalidResourceHandle;
  if (!from->done() || !to->done()) return cudaErrorNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(to->end_ns() - from->end_ns()) / 1e6);
  return cudaSuccess;
}

}  // namespace standin
