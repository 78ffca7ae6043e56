// A CUDA driver whose calls return at once.
#include <cuda.h>

#include <cstring>

extern "C" CUresult bare_copy(CUdeviceptr, const void*, size_t, CUstream);
extern "C" CUresult bare_copy(CUdeviceptr, const void*, size_t, CUstream) {
  return CUDA_SUCCESS;
}

extern "C" {
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, size_t, CUstream) {
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                             CUdriverProcAddressQueryResult*) {
  if (std::strcmp(name, "cuMemcpyHtoDAsync") != 0) return CUDA_ERROR_NOT_FOUND;
  // The library's own, as the real one has it: not a preload's.
  *function = reinterpret_cast<void*>(&bare_copy);
  return CUDA_SUCCESS;
}
}
