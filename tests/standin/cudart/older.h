// Shared by the runtimes before CUDA 13. Their libraries are made of the same objects as CUDA 13's.
// In them, functions whose prototype or structures changed (older.txt) are renamed to
// standin_<name>. older*.cpp has their old bodies, under the names that the old library exports.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

// CUDA 13's function of that name.
#define NOW(name) decltype(name) now_##name __asm__("standin_" #name)

// Gives an old prototype the name that today's header declares with another one.
#define OLD(name) __asm__(#name)

namespace standin {

// cudaDeviceProp up to CUDA 11.8. CUDA 12 appended fields, and CUDA 13 removed some.
struct DeviceProp11 {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
      computeMode, texturesAndSurfaces[40];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
      asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize,
      persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
      globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
      hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess,
      concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
      cooperativeLaunch, cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost,
      maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
};

cudaError_t old_device_properties(DeviceProp11* properties, int device);

}  // namespace standin
