#include "node/gpus.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/library_functions.h"

namespace tprof::node {
namespace {

// Reads what devices do from NVML, which creates no context and ignores CUDA_VISIBLE_DEVICES: its
// devices are nvidia-smi's.
class Nvml {
 public:
  // Loads NVML for good. Returns null, or why it failed.
  const char* load();
  // The number of readable devices, numbered from 0.
  std::uint32_t devices() const { return devices_; }
  // Reads a device. Missing values are kNotRead.
  void read(std::uint32_t device, GpuMetrics& to) const;

 private:
  using Device = void*;
  struct Utilization {
    unsigned gpu, memory;
  };
  struct Memory {
    unsigned long long total, free, used;
  };
  struct Field {  // nvmlFieldValue_t
    unsigned id, scope;
    long long timestamp, latency;
    unsigned type;
    int result;
    union {
      double d;
      unsigned ui;
      unsigned long ul;
      unsigned long long ull;
    } value;
  };
  static std::uint64_t number(const Field& field);

  // nvmlReturn_t is an enum, and 0 is success.
  int (*init_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*handle_)(unsigned, Device*) = nullptr;
  int (*utilization_)(Device, Utilization*) = nullptr;
  int (*memory_)(Device, Memory*) = nullptr;
  int (*power_)(Device, unsigned*) = nullptr;
  int (*fields_)(Device, int, Field*) = nullptr;
  std::uint32_t devices_ = 0;
  Device device_[kMostGpus]{};
};

// NVML_FI_DEV_...: counters of bytes over PCIe, and of KiB over all NVLinks.
// nvmlDeviceGetPcieThroughput would wait for 20 ms, and measure only these.
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
  to.at_ns = now_ns();  // the time of the counters, for rates
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

struct Gpus {
  Nvml nvml;
  int to;
  std::uint64_t every_ns;
  std::uint64_t first_ns;
};
constinit Gpus g_gpus{};

// A reading fits into PIPE_BUF, so it is written whole.
bool tell(std::uint32_t device) {
  GpuReading reading{device, {}};
  g_gpus.nvml.read(device, reading.metrics);
  return reading.metrics.at_ns == kNotRead ||
         write(g_gpus.to, &reading, sizeof reading) == sizeof reading;
}

void sleep_until(std::uint64_t ns) {
  for (std::uint64_t now = now_ns(); now < ns; now = now_ns()) {
    poll(nullptr, 0, static_cast<int>((ns - now) / 1'000'000 + 1));
  }
}

void* run(void*) {
  become_background("tprof-gpus");
  const char* const why_not = g_gpus.nvml.load();
  if (why_not != nullptr) say("TPROF_METRICS: no lanes of GPUs: ", why_not);
  bool well = why_not == nullptr;
  for (std::uint64_t next = g_gpus.first_ns; well;) {
    sleep_until(next);
    for (std::uint32_t i = 0; i < g_gpus.nvml.devices() && well; ++i) well = tell(i);
    next = std::max(next + g_gpus.every_ns, now_ns());
  }
  close(g_gpus.to);
  return nullptr;
}

}  // namespace

int begin_gpus(std::uint64_t every_ns, std::uint64_t first_ns) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  g_gpus.to = ends[1];
  g_gpus.every_ns = every_ns;
  g_gpus.first_ns = first_ns;
  return start_background_thread(run) ? ends[0] : -1;
}

}  // namespace tprof::node
