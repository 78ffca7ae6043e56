// How two clocks ran against each other: a line, or several where the drift changed or a clock was
// set.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "align/line.h"

namespace tprof::align {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// The evidence of one collective about the clocks of two hosts: by how much the clock of one host
// is ahead of another's, at times on the first one's clock. All values are nanoseconds.
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

// One line, until the next one's begin.
struct Piece {
  double begin = 0;
  Line line;
  // The largest error at its begin and at its end, ns. `likely`: three standard deviations of the
  // line. `at_most`: these, and as far as the hard bounds let it move (unbounded: there are none).
  double likely = 0;
  double at_most = kUnbounded;
};

struct Course {
  std::vector<Piece> pieces;  // by begin; at least one
  std::size_t points = 0;

  const Piece& piece_at(double t) const;
  double ahead(double t) const { return piece_at(t).line.at(t); }
};

// Those of the points that have `ends`, by time.
std::vector<Sample> samples_of(const std::vector<Point>& points);

// Takes points in any order, at least one of which has `ends`. The lines keep the hard bounds if
// any line does.
Course course_of(std::vector<Point> points);

}  // namespace tprof::align
