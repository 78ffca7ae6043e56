// The lines that violate none of the hard bounds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "align/line.h"
#include "align/point.h"

namespace tprof::align {

// All lines close to a given one over a stretch of time that keep the bounds of some points. They
// form a convex polygon, whose corners are pairs (at the begin, at the end) of distances from that
// line.
class Corridor {
 public:
  Corridor(const Line& line, double begin, double end);

  // Cuts off the lines that violate the bounds. A bound that none of the remaining lines keeps cuts
  // nothing: it is counted.
  void keep(const Point& p);

  std::size_t contradictions() const { return contradictions_; }
  // Returns by how much the line has to be moved at its begin and end to become one of these.
  Sample nearest() const;
  // Returns how far, at t, one of these lines can be from the given one moved by `moved`. Unbounded
  // if the bounds say nothing about it.
  double width(double t, const Sample& moved) const;

 private:
  struct Corner {
    double begin;
    double end;
  };
  // Keeps the lines whose distance at t is at most (or, with sign -1, at least) this.
  void cut(double t, double distance, double sign);
  double share(double t) const { return end_ > begin_ ? (t - begin_) / (end_ - begin_) : 0; }

  Line line_;
  double begin_;
  double end_;
  std::vector<Corner> corners_;
  std::vector<Corner> kept_;  // reused memory
  std::size_t contradictions_ = 0;
};

}  // namespace tprof::align
