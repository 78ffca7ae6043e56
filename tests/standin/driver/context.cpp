// Devices, contexts, versions and errors.
#include <cstdio>

#include "driver/entry.h"
#include "engine/device.h"
#include "engine/device_info.h"
#include "engine/memory.h"
#include "engine/model.h"
#include "engine/schedule.h"
#include "engine/stream.h"

using namespace standin;

// Declared as in cudaProfiler.h, which not every build has.
extern "C" CUresult cuProfilerStart();
extern "C" CUresult cuProfilerStop();

namespace {

// A context is its device.
char contexts[64];
CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(&contexts[device]);
}

bool valid(CUdevice device) {
  return device >= 0 && device < device_count();
}

CUresult switched(const char* function) {
  if (!has_context(current_device())) return CUDA_ERROR_INVALID_CONTEXT;
  const int64_t now = now_ns();
  if (schedule::wanted())
    schedule::ran({.what = function, .reached_ns = now, .began_ns = now, .ended_ns = now});
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "no error" : "an error of the stand-in's driver";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = device_count();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return valid(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::snprintf(name, static_cast<size_t>(size), "%s", kDeviceName);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  device_uuid(device, uuid->bytes);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}
CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  device_pci(device, text, static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = device_memory_total();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = device_attribute(static_cast<cudaDeviceAttr>(attribute), device);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = has_context(current_device()) ? context_of(current_device()) : nullptr;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  for (int d = 0; d < device_count(); ++d) {
    if (context == context_of(d)) set_current_device(d);
  }
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  if (!has_context(current_device())) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current_device();
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return with_stream(handle, [&](CUstream_st& stream) {
    if (!has_context(stream.device)) return cudaErrorDeviceUninitialized;
    *context = context_of(stream.device);
    return cudaSuccess;
  });
}
CUresult cuCtxSynchronize() {
  for (const Mark& mark : tails_of_device(current_device())) mark->wait();
  return as_driver(device_error());
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags) *flags = 0;
  if (active) *active = has_context(device);
  return CUDA_SUCCESS;
}
CUresult cuProfilerStart() {
  return switched("cuProfilerStart");
}
CUresult cuProfilerStop() {
  return switched("cuProfilerStop");
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  use_context(device);
  *context = context_of(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  return CUDA_SUCCESS;
}

}  // extern "C"
