#include "interpose/device/computed.h"

#include <algorithm>

#include "interpose/device/mode.h"
#include "interpose/device/results.h"

namespace tprof::device {

// Contexts of one device are told of together.
void Computed::tell(Exposure& exposure, const DeviceClock* clock, std::uint64_t now_ns,
                    bool ending) {
  std::uint32_t done = 0;
  for (std::uint32_t first = 0; first < kPools; ++first) {
    if ((done >> first & 1) != 0 || clock[first].anchored_ns() == 0) continue;
    const int ordinal = clock[first].device();
    std::uint32_t pools = 0;
    for (std::uint32_t i = first; i < kPools; ++i) {
      const bool same = clock[i].anchored_ns() != 0 && clock[i].device() == ordinal;
      if (same) pools |= 1U << i;
    }
    done |= pools;
    tell(device_[first], ordinal, pools, exposure, now_ns, ending);
  }
}

void Computed::tell(Device& device, int ordinal, std::uint32_t pools, Exposure& exposure,
                    std::uint64_t now_ns, bool ending) {
  // Work that still ran when the following of streams stopped is soon through, or nobody will know
  // of it.
  constexpr std::uint64_t kPatienceNs = 400'000'000;
  const auto put = [&](const Interval& i, std::uint64_t idle_from_ns) {
    return results::add_busy(ordinal, i, idle_from_ns);
  };
  const Followed followed = when_followed();
  if (device.written_ns < followed.since_ns) {
    if (device.written_ns != 0) device.lines.add({device.written_ns, followed.since_ns, true}, put);
    device.written_ns = followed.since_ns;
  }
  const bool off = followed.until_ns <= now_ns;
  const bool late = ending || (off && now_ns - followed.until_ns >= kPatienceNs);
  const std::uint64_t until_ns =
      std::min(late ? now_ns : exposure.known_until(pools), followed.until_ns);
  if (until_ns > device.written_ns) {
    exposure.computed(pools, device.written_ns, until_ns, found_);
    for (const Interval& i : found_) device.lines.add(i, put);
    device.written_ns = until_ns;
    device.ended = false;
  }
  device.lines.known(device.written_ns, put);
  if (!device.ended && (ending || (off && device.written_ns >= followed.until_ns))) {
    device.lines.end(device.written_ns, put);
    device.ended = true;
  }
  exposure.running(device.written_ns);
}

}  // namespace tprof::device
