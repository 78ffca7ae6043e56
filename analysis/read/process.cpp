#include "read/process.h"

#include <algorithm>

namespace tprof::read {

Amounts& Amounts::operator+=(const Amounts& other) {
  calls += other.calls;
  count += other.count;
  elements += other.elements;
  bytes += other.bytes;
  host_ns += other.host_ns;
  host_ns_max = std::max(host_ns_max, other.host_ns_max);
  device_ns += other.device_ns;
  device_timed += other.device_timed;
  failed += other.failed;
  unfinished += other.unfinished;
  replayed += other.replayed;
  return *this;
}

}  // namespace tprof::read
