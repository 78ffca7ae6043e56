#include "interpose/real/driver_profiler.h"

#include <cuda.h>

#include "interpose/real/function.h"

namespace tprof::profiler_driver {
namespace {

using resolve::DriverFunction;

constinit DriverFunction<int(int*)> g_devices("cuDeviceGetCount");
constinit DriverFunction<int(CUdevice, unsigned*, int*)> g_state("cuDevicePrimaryCtxGetState");
constinit DriverFunction<int(CUcontext*, CUdevice)> g_retain("cuDevicePrimaryCtxRetain");
constinit DriverFunction<int(CUdevice)> g_release("cuDevicePrimaryCtxRelease_v2");
constinit DriverFunction<int(CUcontext)> g_enter("cuCtxSetCurrent");
constinit DriverFunction<int()> g_start("cuProfilerStart");
constinit DriverFunction<int()> g_stop("cuProfilerStop");

}  // namespace

void set(bool on) {
  auto* change = (on ? g_start : g_stop).get();
  auto* devices = g_devices.get();
  auto* enter = g_enter.get();
  auto* state = g_state.get();
  auto* retain = g_retain.get();
  auto* release = g_release.get();
  int count = 0;
  if (!change || !devices || !state || !retain || !release || !enter || devices(&count) != 0)
    return;
  for (CUdevice device = 0; device < count; ++device) {
    unsigned flags = 0;
    int active = 0;
    CUcontext context = nullptr;
    if (state(device, &flags, &active) != 0 || active == 0) continue;
    if (retain(&context, device) != 0) continue;
    if (enter(context) == 0) change();
    enter(nullptr);
    release(device);
  }
}

}  // namespace tprof::profiler_driver
