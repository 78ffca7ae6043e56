// The bandwidth that the links of a machine should have, as the user gives it.
#pragma once

namespace tprof::why {

// Bus bandwidths as nccl-tests counts them, in units of 1e9 bytes a second. 0: not told.
struct Peak {
  double intra = 0;  // between ranks of one host
  double inter = 0;  // of communicators that span hosts

  double of(bool spans_hosts) const { return spans_hosts ? inter : intra; }
};

// A message that is smaller has not the time to reach it.
inline constexpr int kLeastClassOfPeak = 24;  // 16 MiB
inline constexpr double kLeastOfPeak = 0.5;   // less than this is slow

}  // namespace tprof::why
