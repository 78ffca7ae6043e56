#include "interpose/device/device_clock.h"

#include "interpose/base/clock.h"
#include "interpose/real/driver_events.h"

namespace tprof::device {
namespace {

constexpr int kLooks = 8;
constexpr std::uint64_t kPatienceNs = 2'000'000;
constexpr std::uint64_t kAgainNs = 1'000'000'000;

}  // namespace

bool DeviceClock::measure(Anchor& best) {
  best.error_ns = UINT64_MAX;
  for (int i = 0; i < kLooks; ++i) {
    int mine = 0;
    while (mine == current_.event || mine == best.event) ++mine;
    const std::uint64_t before = now_ns();
    if (!event_driver::record(event_[mine], stream_)) return false;
    event_driver::Reached reached{};
    std::uint64_t after = 0;
    do {
      reached = event_driver::reached(event_[mine]);
      after = now_ns();
    } while (reached == event_driver::Reached::not_yet && after - before < kPatienceNs);
    if (reached != event_driver::Reached::yes) return false;
    const std::uint64_t error = (after - before) / 2 + 1;
    if (error < best.error_ns) best = {mine, before + error, error};
  }
  return true;
}

void DeviceClock::follow_drift(double device_ns) {
  past_[anchors_ % kKept] = {device_ns, current_.host_ns};
  const Past& first = past_[anchors_ < kKept ? 0 : (anchors_ + 1) % kKept];
  ++anchors_;
  const double device_time = device_ns - first.device_ns;
  const auto host_time = static_cast<double>(current_.host_ns - first.host_ns);
  if (device_time > 1e9) rate_ = host_time / device_time;
}

bool DeviceClock::anchor() {
  next_ns_ = now_ns() + kAgainNs;
  if (stream_ == nullptr) {
    if (!event_driver::device(device_) || !event_driver::make(stream_)) return false;
  }
  for (CUevent& event : event_) {
    if (event == nullptr && !event_driver::make(event)) return false;
  }
  Anchor best;
  if (!measure(best)) return false;
  double device_ns = 0;
  if (current_.event != kNone) {
    if (!event_driver::elapsed(event_[current_.event], event_[best.event], device_ns)) return false;
    device_ns += past_[(anchors_ - 1) % kKept].device_ns;
  }
  current_ = best;
  follow_drift(device_ns);
  next_ns_ = current_.host_ns + kEveryNs;
  return true;
}

bool DeviceClock::time_of(CUevent reached, std::uint64_t& ns) const {
  double since = 0;
  if (current_.event == kNone) return false;
  if (!event_driver::elapsed(event_[current_.event], reached, since)) return false;
  ns = current_.host_ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(since * rate_));
  return true;
}

}  // namespace tprof::device
