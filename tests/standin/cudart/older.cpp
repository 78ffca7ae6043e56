// Functions of libcudart.so.12 and libcudart.so.11.0, as they were before CUDA 13 changed them.
#include "cudart/older.h"

#include <cstring>

#include "cudart/entry.h"
#include "engine/device_info.h"

using namespace standin;

extern "C" {

NOW(cudaGetDeviceProperties);
NOW(cudaGraphNodeGetDependencies);
NOW(cudaPointerGetAttributes);
NOW(cudaStreamGetCaptureInfo);
NOW(cudaStreamUpdateCaptureDependencies);

cudaError_t driver_version(int* version) OLD(cudaDriverGetVersion);
cudaError_t driver_version(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t old_properties(DeviceProp11* properties, int device) OLD(cudaGetDeviceProperties);
cudaError_t old_properties(DeviceProp11* properties, int device) {
  return old_device_properties(properties, device);
}

// The old structure ends before the 64 reserved bytes of today's.
cudaError_t old_attributes(void* attributes, const void* pointer) OLD(cudaPointerGetAttributes);
cudaError_t old_attributes(void* attributes, const void* pointer) {
  if (!attributes) return done(cudaErrorInvalidValue);
  cudaPointerAttributes now;
  const cudaError_t error = now_cudaPointerGetAttributes(&now, pointer);
  if (error == cudaSuccess)
    std::memcpy(attributes, &now, offsetof(cudaPointerAttributes, reserved));
  return error;
}

cudaError_t old_get(cudaGraphNode_t node, cudaGraphNode_t* after, size_t* count)
    OLD(cudaGraphNodeGetDependencies);
cudaError_t old_get(cudaGraphNode_t node, cudaGraphNode_t* after, size_t* count) {
  return now_cudaGraphNodeGetDependencies(node, after, nullptr, count);
}

// The first version says nothing about the graph, and the second nothing about the edges.
cudaError_t info_1(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id)
    OLD(cudaStreamGetCaptureInfo);
cudaError_t info_1(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  return now_cudaStreamGetCaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
cudaError_t info_1_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                        unsigned long long* id) OLD(cudaStreamGetCaptureInfo_ptsz);
cudaError_t info_1_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                        unsigned long long* id) {
  return info_1(per_thread(stream), status, id);
}
cudaError_t info_2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                   cudaGraph_t* graph, const cudaGraphNode_t** after, size_t* count)
    OLD(cudaStreamGetCaptureInfo_v2);
cudaError_t info_2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                   cudaGraph_t* graph, const cudaGraphNode_t** after, size_t* count) {
  return now_cudaStreamGetCaptureInfo(stream, status, id, graph, after, nullptr, count);
}
cudaError_t info_2_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                        unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** after,
                        size_t* count) OLD(cudaStreamGetCaptureInfo_v2_ptsz);
cudaError_t info_2_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                        unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** after,
                        size_t* count) {
  return info_2(per_thread(stream), status, id, graph, after, count);
}

cudaError_t old_update(cudaStream_t stream, cudaGraphNode_t* nodes, size_t count, unsigned flags)
    OLD(cudaStreamUpdateCaptureDependencies);
cudaError_t old_update(cudaStream_t stream, cudaGraphNode_t* nodes, size_t count, unsigned flags) {
  return now_cudaStreamUpdateCaptureDependencies(stream, nodes, nullptr, count, flags);
}

}  // extern "C"

namespace standin {

cudaError_t old_device_properties(DeviceProp11* properties, int device) {
  cudaDeviceProp now;
  if (!properties) return done(cudaErrorInvalidValue);
  if (const cudaError_t error = now_cudaGetDeviceProperties(&now, device)) return error;
  DeviceProp11& p = *properties;
  std::memset(&p, 0, sizeof p);
  // Both structures agree up to the first field that CUDA 13 removed.
  std::memcpy(&p, &now, offsetof(DeviceProp11, clockRate));
  p.clockRate = device_attribute(cudaDevAttrClockRate, device);
  p.memoryClockRate = device_attribute(cudaDevAttrMemoryClockRate, device);
  p.deviceOverlap = now.asyncEngineCount > 0;
  p.totalConstMem = now.totalConstMem;
  p.major = now.major;
  p.minor = now.minor;
  p.textureAlignment = now.textureAlignment;
  p.multiProcessorCount = now.multiProcessorCount;
  p.canMapHostMemory = now.canMapHostMemory;
  p.concurrentKernels = now.concurrentKernels;
  p.pciBusID = now.pciBusID;
  p.asyncEngineCount = now.asyncEngineCount;
  p.unifiedAddressing = now.unifiedAddressing;
  p.memoryBusWidth = now.memoryBusWidth;
  p.l2CacheSize = now.l2CacheSize;
  p.maxThreadsPerMultiProcessor = now.maxThreadsPerMultiProcessor;
  p.streamPrioritiesSupported = now.streamPrioritiesSupported;
  p.sharedMemPerMultiprocessor = now.sharedMemPerMultiprocessor;
  p.regsPerMultiprocessor = now.regsPerMultiprocessor;
  p.managedMemory = now.managedMemory;
  p.cooperativeLaunch = now.cooperativeLaunch;
  p.sharedMemPerBlockOptin = now.sharedMemPerBlockOptin;
  p.maxBlocksPerMultiProcessor = now.maxBlocksPerMultiProcessor;
  return cudaSuccess;
}

}  // namespace standin
