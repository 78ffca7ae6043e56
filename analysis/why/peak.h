// The bandwidth that the links of a machine should have, given by the user.
#pragma once

namespace tprof::why {

// Bus bandwidths as in nccl-tests, in 1e9 bytes per second. 0: not given.
struct Peak {
  double intra = 0;  // between ranks of one host
  double inter = 0;  // for communicators that span hosts

  double of(bool spans_hosts) const { return spans_hosts ? inter : intra; }
};

// Smaller messages are too short to reach it.
inline constexpr int kLeastClassOfPeak = 24;  // 16 MiB
inline constexpr double kLeastOfPeak = 0.5;   // less than this is slow

}  // namespace tprof::why
