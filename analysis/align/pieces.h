// How two clocks ran against each other: a line, or several where the drift changed or a clock was
// set.
#pragma once

#include <cstddef>
#include <vector>

#include "align/line.h"
#include "align/point.h"

namespace tprof::align {

// One line, until the next one's begin.
struct Piece {
  double begin = 0;
  Line line;
  // The largest error at its begin and at its end, ns. `likely`: three standard deviations of the
  // line. `at_most`: as far as the hard bounds go (unbounded if there are none).
  double likely = 0;
  double at_most = kUnbounded;
};

struct Course {
  std::vector<Piece> pieces;  // by begin; at least one
  std::size_t points = 0;
  std::size_t contradictions = 0;  // hard bounds that no line keeps

  const Piece& piece_at(double t) const;
  double ahead(double t) const { return piece_at(t).line.at(t); }
};

// Takes points in any order, at least one of which has `ends`. The lines keep the hard bounds if
// any line does.
Course course_of(std::vector<Point> points);

}  // namespace tprof::align
