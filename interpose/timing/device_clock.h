// Where a device's events are on the host's clock (CLOCK_MONOTONIC): an anchor is an event on a
// stream of our own whose time the host saw from both sides, and others are as far from it as the
// driver says.
//
// A new anchor every 4 s: the driver tells a distance in a float of milliseconds, which knows half
// a microsecond of 4 s and no more than one of 8.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace tprof::timing {

class DeviceClock {
 public:
  static constexpr std::uint64_t kEveryNs = 4'000'000'000;

  // Since the last anchor, or the last try that the device did not answer.
  bool due(std::uint64_t now_ns) const { return now_ns >= next_ns_; }
  // In the device's context. False: it did not answer within 2 ms, and the old anchor stays.
  bool anchor();

  // False: there is no anchor, or the driver refuses.
  bool time_of(CUevent reached, std::uint64_t& ns) const;

  int device() const { return device_; }
  std::uint64_t anchored_ns() const { return current_.host_ns; }
  // How far from the truth the anchor can be.
  std::uint64_t error_ns() const { return current_.error_ns; }
  // How many nanoseconds the host's clock gains on the device's in a second.
  std::int64_t drift_ppb() const { return static_cast<std::int64_t>((rate_ - 1) * 1e9); }

 private:
  static constexpr int kNone = -1;
  struct Anchor {
    int event = kNone;
    std::uint64_t host_ns = 0;
    std::uint64_t error_ns = 0;
  };
  // Seen from both sides: the best of a few. False: the device did not answer.
  bool look(Anchor& best);
  void follow_drift(double device_ns);

  // An hour's drift in the time of a minute: two anchors may each be wrong by microseconds.
  static constexpr std::uint32_t kKept = 16;
  struct Past {
    double device_ns;  // since the first anchor
    std::uint64_t host_ns;
  };

  CUstream stream_ = nullptr;
  CUevent event_[3] = {};  // the anchor's, that of the best look, and one to look with
  Anchor current_;
  std::uint64_t next_ns_ = 0;
  double rate_ = 1;  // of the host's clock by the device's
  Past past_[kKept] = {};
  std::uint32_t anchors_ = 0;
  int device_ = 0;
};

}  // namespace tprof::timing
