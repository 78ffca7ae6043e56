// The devices' name, ids and attributes. The runtime's and the driver's attribute numbers agree.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace standin {

constexpr const char* kDeviceName = "NVIDIA stand-in (CPU)";

int device_attribute(cudaDeviceAttr attribute, int device);
void device_uuid(int device, char (&bytes)[16]);
void device_pci(int device, char* text, size_t size);

}  // namespace standin
