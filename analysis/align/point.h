// What one collective says of the clocks of two hosts.
#pragma once

#include <limits>

namespace tprof::align {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// All in nanoseconds: by how much the clock of one host is ahead of that of another, over the time
// on the first one's clock.
struct Point {
  // Both hosts' ranks left the collective at about one moment.
  bool ends = false;
  double t = 0;
  double ahead = 0;
  // Nobody leaves before the last has come: at these times it was ahead by no less, and by no more.
  double t_least = 0;
  double least = -kUnbounded;
  double t_most = 0;
  double most = kUnbounded;
};

}  // namespace tprof::align
