#include "engine/device.h"

#include <atomic>

#include "engine/model.h"

namespace standin {
namespace {
thread_local int current = 0;
std::atomic<bool> context[64];
}  // namespace

int current_device() {
  return current;
}

cudaError_t set_current_device(int device) {
  if (device < 0 || device >= device_count()) return cudaErrorInvalidDevice;
  current = device;
  use_context(device);
  return cudaSuccess;
}

void use_context(int device) {
  context[device].store(true, std::memory_order_relaxed);
}
bool has_context(int device) {
  return context[device].load(std::memory_order_relaxed);
}

}  // namespace standin
