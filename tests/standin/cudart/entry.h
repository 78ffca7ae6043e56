// Shared by all runtime entry points.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/stream.h"

namespace standin {

// The result of every entry point passes through here: cudaGetLastError reports it.
cudaError_t done(cudaError_t error);

// Calls `body` with the stream, or fails as the runtime does for an invalid handle.
template <class Body>
cudaError_t with_stream(cudaStream_t handle, Body body) {
  const StreamRef stream = find_stream(handle);
  return done(stream ? body(*stream) : cudaErrorInvalidResourceHandle);
}

// In a _ptsz or _ptds twin stream 0 means the thread's own stream (CUDA programming guide,
// "Default Stream"; the names are chosen at compile time by --default-stream=per-thread).
inline cudaStream_t per_thread(cudaStream_t stream) {
  return stream ? stream : cudaStreamPerThread;
}

}  // namespace standin
