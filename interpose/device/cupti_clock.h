// Converts times of CUPTI's clock to the host's. CUPTI tells the current time in the clock of its
// records, which runs at the pace of CLOCK_REALTIME. CLOCK_REALTIME may be set and slewed, so CUPTI
// is asked again and again. It does not tell how well it knows a device's clock.
#pragma once

#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/device/cupti_client.h"

namespace tprof::device {

class CuptiClock {
 public:
  // Takes the best of a few readings. False: CUPTI does not answer, and the last reading stays.
  bool ask() {
    constexpr int kLooks = 4;
    bool any = false;
    for (int i = 0; i < kLooks; ++i) {
      const std::uint64_t before = now_ns();
      std::uint64_t theirs = 0;
      if (!cupti::time(theirs)) break;
      const std::uint64_t error = (now_ns() - before) / 2 + 1;
      if (any && error >= error_ns_) continue;
      any = true;
      at_ns_ = before + error;
      error_ns_ = error;
      ahead_ = theirs - at_ns_;  // modulo 2^64
    }
    return any;
  }

  std::uint64_t on_host(std::uint64_t theirs) const { return theirs - ahead_; }
  std::uint64_t at_ns() const { return at_ns_; }
  std::uint64_t error_ns() const { return error_ns_; }

 private:
  std::uint64_t at_ns_;
  std::uint64_t error_ns_;
  std::uint64_t ahead_;
};

}  // namespace tprof::device
