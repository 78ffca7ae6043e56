// Shared by the driver's entry points. Handles and error numbers are the runtime's.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "engine/stream.h"

namespace standin {

inline CUresult as_driver(cudaError_t error) {
  return static_cast<CUresult>(error);
}

inline void* pointer(CUdeviceptr address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is an integer in this API
  return reinterpret_cast<void*>(address);
}

template <class Body>
CUresult with_stream(CUstream handle, Body body) {
  const StreamRef stream = find_stream(handle);
  return stream ? as_driver(body(*stream)) : CUDA_ERROR_INVALID_HANDLE;
}

// A function that cuGetProcAddress returns without dlsym, under the name that the library exports.
// The real one never calls dlsym, so a preload must not see a lookup of these. All other functions
// are looked up with dlsym.
struct EntryPoint {
  EntryPoint(const char* exported, void* function);
};

}  // namespace standin

// Defines a function that cuGetProcAddress returns without dlsym.
#define STANDIN_ENTRY(function, parameters, ...)                      \
  extern "C" CUresult function parameters;                            \
  extern "C" CUresult function parameters {                           \
    return __VA_ARGS__;                                               \
  }                                                                   \
  [[maybe_unused]] static const standin::EntryPoint given_##function{ \
      #function, reinterpret_cast<void*>(&function)};

// cuda.h gives every name its newest meaning by a macro; the library also exports the older ones.
#undef cuDeviceGetUuid
#undef cuEventElapsedTime
#undef cuStreamGetCaptureInfo
extern "C" {
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end);
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** after, size_t* count);
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** after,
                                   const CUgraphEdgeData** edges, size_t* count);
}
