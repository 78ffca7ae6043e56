// Devices, versions, properties and errors.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "cudart/entry.h"
#include "engine/capture.h"
#include "engine/device.h"
#include "engine/device_info.h"
#include "engine/memory.h"
#include "engine/model.h"

namespace standin {
namespace {
thread_local cudaError_t last_error = cudaSuccess;

bool valid(int device) {
  return device >= 0 && device < device_count();
}
}  // namespace

cudaError_t done(cudaError_t error) {
  // Loads the driver as the real runtime does, which can do nothing without it.
  [[maybe_unused]] static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace standin

using namespace standin;

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  return last_error;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  static const auto find = reinterpret_cast<decltype(&cuGetProcAddress)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2"));
  const bool found = find && find(name, function, static_cast<int>(version), flags, nullptr) == 0;
  if (status) *status = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, status);
}
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* name, void** function,
                                         unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* name, void** function,
                                         unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION,
                                          flags | cudaEnablePerThreadDefaultStream, status);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return done(cudaErrorInvalidValue);
  *count = device_count();
  return done(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  if (!device) return done(cudaErrorInvalidValue);
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return done(set_current_device(device));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!properties || !valid(device)) return done(cudaErrorInvalidDevice);
  const auto attribute = [device](cudaDeviceAttr a) { return device_attribute(a, device); };
  cudaDeviceProp& p = *properties;
  std::memset(&p, 0, sizeof p);
  std::snprintf(p.name, sizeof p.name, "%s", kDeviceName);
  device_uuid(device, p.uuid.bytes);
  p.totalGlobalMem = device_memory_total();
  p.sharedMemPerBlock = static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlock));
  p.sharedMemPerBlockOptin =
      static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  p.sharedMemPerMultiprocessor =
      static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  p.regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
  p.regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  p.warpSize = attribute(cudaDevAttrWarpSize);
  p.maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  p.maxThreadsDim[0] = attribute(cudaDevAttrMaxBlockDimX);
  p.maxThreadsDim[1] = attribute(cudaDevAttrMaxBlockDimY);
  p.maxThreadsDim[2] = attribute(cudaDevAttrMaxBlockDimZ);
  p.maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX);
  p.maxGridSize[1] = attribute(cudaDevAttrMaxGridDimY);
  p.maxGridSize[2] = attribute(cudaDevAttrMaxGridDimZ);
  p.maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  p.maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  p.totalConstMem = static_cast<size_t>(attribute(cudaDevAttrTotalConstantMemory));
  p.memPitch = static_cast<size_t>(attribute(cudaDevAttrMaxPitch));
  p.textureAlignment = static_cast<size_t>(attribute(cudaDevAttrTextureAlignment));
  p.major = attribute(cudaDevAttrComputeCapabilityMajor);
  p.minor = attribute(cudaDevAttrComputeCapabilityMinor);
  p.multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
  p.l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  p.memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  p.asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  p.concurrentKernels = attribute(cudaDevAttrConcurrentKernels);
  p.unifiedAddressing = attribute(cudaDevAttrUnifiedAddressing);
  p.canMapHostMemory = attribute(cudaDevAttrCanMapHostMemory);
  p.managedMemory = attribute(cudaDevAttrManagedMemory);
  p.cooperativeLaunch = attribute(cudaDevAttrCooperativeLaunch);
  p.streamPrioritiesSupported = attribute(cudaDevAttrStreamPrioritiesSupported);
  p.hostRegisterSupported = attribute(cudaDevAttrHostRegisterSupported);
  p.memoryPoolsSupported = attribute(cudaDevAttrMemoryPoolsSupported);
  p.pciBusID = attribute(cudaDevAttrPciBusId);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!value || !valid(device)) return done(cudaErrorInvalidDevice);
  *value = device_attribute(attribute, device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  if (!text || !valid(device)) return done(cudaErrorInvalidDevice);
  device_pci(device, text, static_cast<size_t>(size));
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = check_not_capturing(nullptr)) return done(error);
  use_context(current_device());
  for (const Mark& mark : tails_of_device(current_device())) mark->wait();
  return done(device_error());
}
cudaError_t cudaDeviceReset() {
  const cudaError_t result = cudaDeviceSynchronize();
  if (result == cudaSuccess) release_all(current_device());
  return result;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!valid(device) || !valid(peer)) return done(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return done(valid(peer) ? cudaSuccess : cudaErrorInvalidDevice);
}

}  // extern "C"
