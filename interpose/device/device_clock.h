// Converts times of a device's events to the host's clock (CLOCK_MONOTONIC). An anchor is an event
// on our own stream; the host reads its clock before and after it. The driver gives the time from
// the anchor to other events.
//
// A new anchor is made every 4 s, since the driver gives that time as a float of milliseconds,
// which resolves half a microsecond at 4 s, and only one at 8 s.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace tprof::device {

class DeviceClock {
 public:
  static constexpr std::uint64_t kEveryNs = 4'000'000'000;

  // True 4 s after the last anchor, or 1 s after a failed try.
  bool due(std::uint64_t now_ns) const { return now_ns >= next_ns_; }
  // Call this in the device's context. If the device does not answer within 2 ms, returns false and
  // keeps the old anchor.
  bool anchor();

  // Returns false if there is no anchor, or the driver refuses.
  bool time_of(CUevent reached, std::uint64_t& ns) const;

  int device() const { return device_; }
  std::uint64_t anchored_ns() const { return current_.host_ns; }
  // The largest possible error of the anchor.
  std::uint64_t error_ns() const { return current_.error_ns; }
  // Nanoseconds per second by which the host's clock is faster than the device's.
  std::int64_t drift_ppb() const { return static_cast<std::int64_t>((rate_ - 1) * 1e9); }

 private:
  static constexpr int kNone = -1;
  struct Anchor {
    int event = kNone;
    std::uint64_t host_ns = 0;
    std::uint64_t error_ns = 0;
  };
  // Takes the best of a few readings, with the host's clock read before and after each. Returns
  // false if the device did not answer.
  bool measure(Anchor& best);
  void follow_drift(double device_ns);

  // The drift is measured over about a minute, since each anchor may be wrong by microseconds.
  static constexpr std::uint32_t kKept = 16;
  struct Past {
    double device_ns;  // since the first anchor
    std::uint64_t host_ns;
  };

  CUstream stream_ = nullptr;
  CUevent event_[3] = {};  // the anchor, the best reading, and one for the next reading
  Anchor current_;
  std::uint64_t next_ns_ = 0;
  double rate_ = 1;  // host time per device time
  Past past_[kKept] = {};
  std::uint32_t anchors_ = 0;
  int device_ = 0;
};

}  // namespace tprof::device
