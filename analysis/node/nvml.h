// Reads from NVIDIA's management library what devices do. It makes no context and knows nothing of
// CUDA_VISIBLE_DEVICES: its devices are nvidia-smi's.
#pragma once

#include <cstdint>

#include "interpose/format/metrics.h"

namespace tprof::node {

class Nvml {
 public:
  // Loads NVML, which stays loaded. Null: it is ready; else the reason why not.
  const char* load();
  // The number of devices that can be read; they are numbered from 0.
  std::uint32_t devices() const { return devices_; }
  // Reads a device. Values that NVML does not tell are kNotRead.
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

}  // namespace tprof::node
