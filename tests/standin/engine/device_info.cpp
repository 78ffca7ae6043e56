#include "engine/device_info.h"

#include <cstdio>
#include <cstring>

namespace standin {

// A Hopper's figures (compute capability 9.0), for the attributes that frameworks ask for.
int device_attribute(cudaDeviceAttr attribute, int device) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return 228 << 10;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return 1 << 10;
    case cudaDevAttrTotalConstantMemory:
      return 64 << 10;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxPitch:
      return 2147483647;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return 65536;
    case cudaDevAttrClockRate:
      return 1980000;
    case cudaDevAttrMemoryClockRate:
      return 2619000;
    case cudaDevAttrGlobalMemoryBusWidth:
      return 5120;
    case cudaDevAttrTextureAlignment:
      return 512;
    case cudaDevAttrMultiProcessorCount:
      return 132;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrL2CacheSize:
      return 50 << 20;
    case cudaDevAttrAsyncEngineCount:
      return 3;
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrPciBusId:
      return device + 1;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrComputePreemptionSupported:
      return 1;
    default:
      return 0;
  }
}

void device_uuid(int device, char (&bytes)[16]) {
  std::memcpy(bytes, "standin-device-", 15);
  bytes[15] = static_cast<char>('0' + device);
}

void device_pci(int device, char* text, size_t size) {
  std::snprintf(text, size, "0000:%02x:00.0", static_cast<unsigned>(device + 1));
}

}  // namespace standin
