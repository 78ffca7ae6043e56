// Counts how long each device was busy with kernels other than NCCL's, with one or many at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interpose/base/pages.h"
#include "interpose/format/ring_file.h"

namespace tprof::timing {

class Compute {
 public:
  void ran(std::uint32_t device, std::uint64_t start_ns, std::uint64_t end_ns) {
    if (device < kTimedDevices) kernels_.push_back({start_ns, end_ns, device});
  }

  // Counts kernels that began by `until_ns` and are known by now. A kernel that CUPTI reports late
  // is not counted any more if it ran before others that were counted.
  void settle(std::uint64_t until_ns, Head& head) {
    std::sort(kernels_.begin(), kernels_.end(),
              [](const Kernel& a, const Kernel& b) { return a.start_ns < b.start_ns; });
    std::size_t kept = 0;
    for (const Kernel& k : kernels_) {
      if (k.start_ns > until_ns) {
        kernels_.data()[kept++] = k;
        continue;
      }
      std::uint64_t& covered = covered_until_[k.device];
      const std::uint64_t from = std::max(k.start_ns, covered);
      if (k.end_ns <= from) continue;
      head.compute[k.device].fetch_add(k.end_ns - from, std::memory_order_relaxed);
      covered = k.end_ns;
    }
    kernels_.cut(kept);
  }

 private:
  struct Kernel {
    std::uint64_t start_ns;
    std::uint64_t end_ns;
    std::uint32_t device;
  };
  Pages<Kernel> kernels_;
  std::uint64_t covered_until_[kTimedDevices] = {};
};

}  // namespace tprof::timing
