// TPROF_TIMING=events: tells when devices computed, in a line for each interval.
#pragma once

#include <cstdint>

#include "interpose/base/pages.h"
#include "interpose/device/device_clock.h"
#include "interpose/device/exposure.h"
#include "interpose/device/intervals.h"
#include "interpose/device/pairs.h"

namespace tprof::device {

class Computed {
 public:
  // Puts what became known since the last call into lines. `clock`: of each pool's device.
  // `ending`: nothing more will become known. Has `exposure` keep what is not told yet.
  void tell(Exposure& exposure, const DeviceClock* clock, std::uint64_t now_ns, bool ending);

 private:
  struct Device {
    Intervals lines;
    std::uint64_t written_ns = 0;
    bool ended = false;
  };
  void tell(Device& device, int ordinal, std::uint32_t pools, Exposure& exposure,
            std::uint64_t now_ns, bool ending);

  Device device_[kPools];  // at the place of its first pool
  Pages<Interval> found_;
};

}  // namespace tprof::device
