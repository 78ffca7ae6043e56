// Fits a line to points, most of which lie near one.
#pragma once

#include <span>

namespace tprof::align {

struct Sample {
  double t = 0;
  double y = 0;
};

struct Line {
  double t0 = 0;  // the middle of what it was fitted to
  double y0 = 0;
  double slope = 0;
  // The points that it was fitted to: their number, their distance from it (standard deviation),
  // and their spread in time (the sum of the squares of t - t0).
  double n = 0;
  double noise = 0;
  double spread = 0;

  double at(double t) const { return y0 + slope * (t - t0); }
  // Returns the standard deviation of at(t).
  double deviation(double t) const;
};

// Takes points in the order of their t, at least one. Half of them may be anywhere.
Line fitted_line(std::span<const Sample> points);

// Returns the standard deviation of one point, from how neighbours differ: steps and bends don't
// count.
double noise_of(std::span<const Sample> points);

// Reorders `values`.
double median(std::span<double> values);

}  // namespace tprof::align
