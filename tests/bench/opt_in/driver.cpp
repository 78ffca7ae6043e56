// A CUDA driver whose calls return at once.
#include <cuda.h>

#include <cstring>

#include "tests/fault/instant/answers.h"

extern "C" CUresult bare_copy(CUdeviceptr, const void*, size_t, CUstream);
extern "C" DRIVER_ANSWERS(bare_copy, CUdeviceptr, const void*, size_t, CUstream)

#undef cuEventElapsedTime
    extern "C" CUresult cuEventElapsedTime(float*, CUevent, CUevent);
extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus*, cuuint64_t*,
                                              CUgraph*, const CUgraphNode**, size_t*);

extern "C" {
DRIVER_ANSWERS(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, size_t, CUstream)
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute*, void** data, CUdeviceptr) {
  for (unsigned i = 0; i < n; ++i) *static_cast<int*>(data[i]) = 0;
  return CUDA_SUCCESS;
}
// Every event is reached as soon as it is recorded.
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
DRIVER_ANSWERS(cuStreamBeginCapture_v2, CUstream, CUstreamCaptureMode)
DRIVER_ANSWERS(cuStreamEndCapture, CUstream, CUgraph*)
CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                                   const CUgraphNode**, size_t*) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream, CUcontext* context) {
  static char any;
  *context = reinterpret_cast<CUcontext>(&any);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  return cuStreamGetCtx(nullptr, context);
}
DRIVER_ANSWERS(cuCtxSetCurrent, CUcontext)
DRIVER_ANSWERS(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode*)
CUresult cuStreamCreate(CUstream* stream, unsigned) {
  static char any;
  *stream = reinterpret_cast<CUstream>(&any);
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  static char any;
  *event = reinterpret_cast<CUevent>(&any);
  return CUDA_SUCCESS;
}
DRIVER_ANSWERS(cuEventRecord, CUevent, CUstream)
CUresult cuStreamQuery(CUstream) {
  return CUDA_ERROR_NOT_READY;  // a program far ahead of its device
}
DRIVER_ANSWERS(cuEventQuery, CUevent)
CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 1;
  return CUDA_SUCCESS;
}
CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                             CUdriverProcAddressQueryResult*) {
  if (std::strcmp(name, "cuMemcpyHtoDAsync") != 0) return CUDA_ERROR_NOT_FOUND;
  // Returns the library's own function, as the real one does, and not a preload's.
  *function = reinterpret_cast<void*>(&bare_copy);
  return CUDA_SUCCESS;
}
}
