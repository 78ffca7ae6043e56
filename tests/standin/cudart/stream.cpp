// Streams and host callbacks.
#include <algorithm>

#include "cudart/entry.h"
#include "engine/capture.h"
#include "engine/device.h"
#include "engine/graph.h"
#include "engine/model.h"

using namespace standin;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  if (!out || (flags & ~cudaStreamNonBlocking)) return done(cudaErrorInvalidValue);
  use_context(current_device());
  *out = create_stream(current_device(), flags, std::clamp(priority, -5, 0)).get();
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* out) {
  return cudaStreamCreateWithPriority(out, cudaStreamDefault, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return done(destroy_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return with_stream(stream, [](CUstream_st& s) {
    if (const cudaError_t error = check_not_capturing(&s)) return error;
    use_context(s.device);
    if (const Mark tail = tail_of(s)) tail->wait();
    return device_error();
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return with_stream(stream, [](CUstream_st& s) {
    if (const cudaError_t error = check_not_capturing(&s)) return error;
    use_context(s.device);
    const Mark tail = tail_of(s);
    return tail && !tail->done() ? cudaErrorNotReady : device_error();
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return with_stream(stream, [&](CUstream_st& s) {
    *priority = s.priority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return with_stream(stream, [&](CUstream_st& s) {
    *id = s.id;
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return with_stream(stream, [&](CUstream_st& s) {
    submit(s, {.run =
                   [=] {
                     function(data);
                     return cudaSuccess;
                   },
               .type = cudaGraphNodeTypeHost});
    return cudaSuccess;
  });
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  return with_stream(stream, [&](CUstream_st& s) {
    if (const cudaError_t error = check_not_capturing(&s)) return error;
    submit(s, {.run =
                   [=] {
                     callback(stream, device_error(), data);
                     return cudaSuccess;
                   },
               .type = cudaGraphNodeTypeHost});
    return cudaSuccess;
  });
}

}  // extern "C"
