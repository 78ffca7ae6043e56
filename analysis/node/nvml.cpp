#include "node/nvml.h"

#include <dlfcn.h>

#include <algorithm>

#include "interpose/base/clock.h"
#include "interpose/base/library_functions.h"

namespace tprof::node {
namespace {

// NVML_FI_DEV_...: bytes that have gone over PCIe, and KiB over all links of NVLink. These are
// counters; nvmlDeviceGetPcieThroughput waits for 20 ms, and tells of these only.
enum FieldId : unsigned {
  nvlink_sent = 138,
  nvlink_received = 139,
  pcie_sent = 197,
  pcie_received = 198
};
constexpr unsigned kAllLinks = UINT32_MAX;
constexpr std::uint64_t kKiB = 1024;

std::uint64_t bytes_of_kib(std::uint64_t n) {
  return n > kNotRead / kKiB ? kNotRead : n * kKiB;
}

}  // namespace

const char* Nvml::load() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    dlerror();
    return "there is no libnvidia-ml.so.1 here";
  }
  LibraryFunctions functions(library, dlsym);
  functions.find(init_, "nvmlInit_v2");
  functions.find(count_, "nvmlDeviceGetCount_v2");
  functions.find(handle_, "nvmlDeviceGetHandleByIndex_v2");
  functions.find(utilization_, "nvmlDeviceGetUtilizationRates");
  functions.find(memory_, "nvmlDeviceGetMemoryInfo");
  functions.find(power_, "nvmlDeviceGetPowerUsage");
  functions.find(fields_, "nvmlDeviceGetFieldValues");
  if (!functions.whole()) return "libnvidia-ml.so.1 lacks functions that are needed";
  unsigned devices = 0;
  if (init_() != 0 || count_(&devices) != 0) return "NVML can't be initialized";
  for (unsigned i = 0; i < std::min(devices, kMostGpus); ++i) {
    if (handle_(i, &device_[i]) != 0) device_[i] = nullptr;
    devices_ = i + 1;
  }
  return devices_ == 0 ? "NVML knows no device" : nullptr;
}

std::uint64_t Nvml::number(const Field& field) {
  enum Type : unsigned { unsigned_int = 1, unsigned_long = 2, unsigned_long_long = 3 };
  if (field.result != 0) return kNotRead;
  switch (field.type) {
    case unsigned_int:
      return field.value.ui;
    case unsigned_long:
      return field.value.ul;
    case unsigned_long_long:
      return field.value.ull;
    default:
      return kNotRead;
  }
}

void Nvml::read(std::uint32_t device, GpuMetrics& to) const {
  to = {};
  Device of = device_[device];
  if (of == nullptr) return;
  Field field[4]{};
  field[0].id = pcie_received;
  field[1].id = pcie_sent;
  field[2].id = nvlink_received;
  field[3].id = nvlink_sent;
  field[2].scope = field[3].scope = kAllLinks;
  const bool known = fields_(of, 4, field) == 0;
  to.at_ns = now_ns();  // the time of the counters that rates are made of
  if (known) {
    to.pcie_received = number(field[0]);
    to.pcie_sent = number(field[1]);
    to.nvlink_received = bytes_of_kib(number(field[2]));
    to.nvlink_sent = bytes_of_kib(number(field[3]));
  }
  Utilization utilization;
  if (utilization_(of, &utilization) == 0) {
    to.busy = utilization.gpu;
    to.memory_busy = utilization.memory;
  }
  Memory memory;
  if (memory_(of, &memory) == 0) to.memory_used = memory.used;
  unsigned milliwatts = 0;
  if (power_(of, &milliwatts) == 0) to.milliwatts = milliwatts;
}

}  // namespace tprof::node
