#include "align/line.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

namespace tprof::align {
namespace {

// For a normal distribution: the standard deviation over the median distance from the middle.
constexpr double kNormal = 1.4826;

// Reduces the points to a few groups, and each group to its medians.
std::vector<Sample> medians(std::span<const Sample> points) {
  constexpr std::size_t kGroups = 32;
  const std::size_t groups = std::min(kGroups, points.size());
  std::vector<Sample> found;
  std::vector<double> t;
  std::vector<double> y;
  for (std::size_t g = 0; g < groups; ++g) {
    t.clear();
    y.clear();
    const std::size_t end = points.size() * (g + 1) / groups;
    for (std::size_t i = points.size() * g / groups; i < end; ++i) {
      t.push_back(points[i].t);
      y.push_back(points[i].y);
    }
    found.push_back({median(t), median(y)});
  }
  return found;
}

// Theil and Sen: takes the median of the slopes between any two points.
Line rough_line(std::span<const Sample> points) {
  const std::vector<Sample> few = medians(points);
  std::vector<double> values;
  for (std::size_t i = 0; i < few.size(); ++i) {
    for (std::size_t j = i + 1; j < few.size(); ++j) {
      const double apart = few[j].t - few[i].t;
      if (apart > 0) values.push_back((few[j].y - few[i].y) / apart);
    }
  }
  Line line;
  line.slope = values.empty() ? 0 : median(values);
  line.t0 = few[few.size() / 2].t;
  values.clear();
  for (const Sample& p : few) values.push_back(p.y - line.slope * (p.t - line.t0));
  line.y0 = median(values);
  return line;
}

// Fits least squares over the points that are no further from `rough` than this.
Line least_squares(std::span<const Sample> points, const Line& rough, double furthest) {
  Line line;
  double t_sum = 0;
  double r_sum = 0;
  const auto near = [&](const Sample& p) { return std::abs(p.y - rough.at(p.t)) <= furthest; };
  for (const Sample& p : points) {
    if (!near(p)) continue;
    ++line.n;
    t_sum += p.t - rough.t0;
    r_sum += p.y - rough.at(p.t);
  }
  if (line.n == 0) return rough;
  line.t0 = rough.t0 + t_sum / line.n;
  const double r_mean = r_sum / line.n;
  double product = 0;
  for (const Sample& p : points) {
    if (!near(p)) continue;
    const double dt = p.t - line.t0;
    line.spread += dt * dt;
    product += dt * (p.y - rough.at(p.t) - r_mean);
  }
  line.slope = rough.slope + (line.spread > 0 ? product / line.spread : 0);
  line.y0 = rough.at(line.t0) + r_mean;
  double squares = 0;
  for (const Sample& p : points) {
    if (near(p)) squares += (p.y - line.at(p.t)) * (p.y - line.at(p.t));
  }
  line.noise = line.n > 2 ? std::sqrt(squares / (line.n - 2)) : 0;
  return line;
}

}  // namespace

double Line::deviation(double t) const {
  if (n < 3) return 0;  // too few to tell
  const double far = t - t0;
  return noise * std::sqrt(1 / n + (spread > 0 ? far * far / spread : 0));
}

double median(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double noise_of(std::span<const Sample> points) {
  if (points.size() < 3) return 0;
  // Takes how far each point is from the line between its neighbours.
  std::vector<double> off;
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    const auto& [before, p, after] = std::tie(points[i - 1], points[i], points[i + 1]);
    const double apart = after.t - before.t;
    const double w = apart > 0 ? (p.t - before.t) / apart : 0.5;
    const double between = before.y + w * (after.y - before.y);
    off.push_back(std::abs(p.y - between) / std::sqrt(1 + w * w + (1 - w) * (1 - w)));
  }
  return kNormal * median(off);
}

Line fitted_line(std::span<const Sample> points) {
  Line line = rough_line(points);
  std::vector<double> off;
  for (int round = 0; round < 2; ++round) {
    off.clear();
    for (const Sample& p : points) off.push_back(std::abs(p.y - line.at(p.t)));
    // Few points are all kept: one that is far off may be right.
    const double furthest = points.size() < 8 ? kNormal * 1e18 : 4 * kNormal * median(off) + 1;
    line = least_squares(points, line, furthest);
  }
  return line;
}

}  // namespace tprof::align
