// Determines when and how long each device ran one or more kernels other than NCCL's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "interpose/base/pages.h"
#include "interpose/device/intervals.h"
#include "interpose/format/ring_file.h"

namespace tprof::device {

class Compute {
 public:
  void ran(std::uint32_t device, std::uint64_t start_ns, std::uint64_t end_ns) {
    if (device < kTimedDevices) kernels_.push_back({start_ns, end_ns, device});
  }

  // Kernels are known from here on. `others`: earlier kernels may still run, until the first known
  // one.
  void begins(std::uint64_t since_ns, bool others) {
    for (std::uint64_t& unsure : unsure_from_) unsure = others ? since_ns : 0;
  }

  // Counts the known kernels that began by `until_ns`. A kernel reported late is not counted if it
  // ran before counted ones. Calls `put` for what it counts, as Intervals does, with the device,
  // too.
  template <typename Put>
  void settle(std::uint64_t until_ns, Head& head, Put&& put) {
    std::sort(kernels_.begin(), kernels_.end(),
              [](const Kernel& a, const Kernel& b) { return a.start_ns < b.start_ns; });
    kernels_.erase_if([&](const Kernel& k) {
      if (k.start_ns > until_ns) return false;
      std::uint64_t& covered = covered_until_[k.device];
      const std::uint64_t from = std::max(k.start_ns, covered);
      if (k.end_ns <= from) return true;
      head.compute[k.device].fetch_add(k.end_ns - from, std::memory_order_relaxed);
      const std::uint64_t unsure_from = std::exchange(unsure_from_[k.device], 0);
      const auto put_here = put_of(k.device, put);
      if (unsure_from != 0 && unsure_from < from) {
        lines_[k.device].add({unsure_from, from, true}, put_here);
      }
      lines_[k.device].add({from, k.end_ns, false}, put_here);
      covered = k.end_ns;
      return true;
    });
  }

  // There are no more kernels that began before `until_ns`; with `some_missing`, except after the
  // last known one. `ends`: nothing is known of what comes next.
  template <typename Put>
  void known(std::uint64_t until_ns, bool some_missing, bool ends, Put&& put) {
    for (std::uint32_t i = 0; i < kTimedDevices; ++i) {
      if (covered_until_[i] == 0) continue;
      const std::uint64_t from_ns = std::max(covered_until_[i], known_until_[i]);
      if (some_missing && from_ns < until_ns)
        lines_[i].add({from_ns, until_ns, true}, put_of(i, put));
      known_until_[i] = std::max(known_until_[i], until_ns);
      ends ? lines_[i].end(until_ns, put_of(i, put)) : lines_[i].known(until_ns, put_of(i, put));
    }
  }

 private:
  template <typename Put>
  static auto put_of(std::uint32_t device, Put& put) {
    return [device, &put](const Interval& i, std::uint64_t idle_from_ns) {
      return put(static_cast<int>(device), i, idle_from_ns);
    };
  }

  struct Kernel {
    std::uint64_t start_ns;
    std::uint64_t end_ns;
    std::uint32_t device;
  };
  Pages<Kernel> kernels_;
  std::uint64_t covered_until_[kTimedDevices] = {};
  std::uint64_t known_until_[kTimedDevices] = {};
  std::uint64_t unsure_from_[kTimedDevices] = {};  // 0: all is known
  Intervals lines_[kTimedDevices];
};

}  // namespace tprof::device
