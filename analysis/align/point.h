// The evidence of one collective about the clocks of two hosts.
#pragma once

#include <limits>

namespace tprof::align {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// Tells by how much the clock of one host is ahead of another's, at times on the first one's clock.
// All values are nanoseconds.
struct Point {
  // Both hosts' ranks left the collective at about one moment.
  bool ends = false;
  double t = 0;
  double ahead = 0;
  // Nobody leaves before the last has come. So it was ahead by `least` or more at `t_least`, and by
  // `most` or less at `t_most`.
  double t_least = 0;
  double least = -kUnbounded;
  double t_most = 0;
  double most = kUnbounded;
};

}  // namespace tprof::align
