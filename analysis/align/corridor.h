// The lines that violate none of the hard bounds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "align/line.h"
#include "align/point.h"

namespace tprof::align {

// All lines close to a given one over a stretch of time that keep the bounds of some points: a
// convex polygon, whose corners are pairs (at the begin, at the end) of distances from that line.
class Corridor {
 public:
  Corridor(const Line& line, double begin, double end);

  // Cuts off what violates the bounds. A bound that no line of what is left keeps cuts nothing: it
  // is counted.
  void keep(const Point& p);

  std::size_t contradictions() const { return contradictions_; }
  // By how much the line has to be moved at its begin and end for it to be one of these.
  Sample nearest() const;
  // How far a line of these can be from the given one, moved by `moved`, at t. Unbounded where the
  // bounds say nothing of it.
  double width(double t, const Sample& moved) const;

 private:
  struct Corner {
    double begin;
    double end;
  };
  // Those whose distance at t is at most (or, with sign -1, at least) this.
  void cut(double t, double distance, double sign);
  double share(double t) const { return end_ > begin_ ? (t - begin_) / (end_ - begin_) : 0; }

  Line line_;
  double begin_;
  double end_;
  std::vector<Corner> corners_;
  std::vector<Corner> kept_;  // room that is used again
  std::size_t contradictions_ = 0;
};

}  // namespace tprof::align
