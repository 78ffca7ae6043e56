// Shows the times of calls in tables.
#pragma once

#include <string>

#include "read/process.h"
#include "stats/spread.h"
#include "text/text.h"

namespace tprof::report {

inline std::string device_time(const read::Amounts& a) {
  return a.device_timed == 0 ? "-" : text::duration(a.device_ns);
}

// Replayed calls were never made by the host.
inline std::string host_time(const read::Amounts& a) {
  return a.calls != 0 && a.calls == a.replayed ? "-" : text::duration(a.host_ns);
}

inline std::string mean_time(const stats::Spread& s) {
  return text::duration(static_cast<std::uint64_t>(s.mean_ns));
}
inline std::string std_time(const stats::Spread& s) {
  return text::duration(static_cast<std::uint64_t>(s.std_ns()));
}

}  // namespace tprof::report
