// A CUDA runtime whose calls return at once; see instant_nccl.cpp.
#include <cuda_runtime_api.h>

#include "answers.h"

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  *pointer = new char[bytes];
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  delete[] static_cast<char*>(pointer);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  *pointer = new char[bytes];
  return cudaSuccess;
}
RUNTIME_ANSWERS(cudaHostRegister, void*, size_t, unsigned)
RUNTIME_ANSWERS(cudaHostUnregister, void*)
RUNTIME_ANSWERS(cudaMemcpy, void*, const void*, size_t, cudaMemcpyKind)
RUNTIME_ANSWERS(cudaMemcpyAsync, void*, const void*, size_t, cudaMemcpyKind, cudaStream_t)
RUNTIME_ANSWERS(cudaLaunchKernel, const void*, dim3, dim3, void**, size_t, cudaStream_t)
RUNTIME_ANSWERS(cudaStreamWaitEvent, cudaStream_t, cudaEvent_t, unsigned)

}  // extern "C"
