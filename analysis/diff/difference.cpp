#include "diff/difference.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "align/clocks.h"

namespace tprof::diff {
namespace {

constexpr double kFarDeviations = 3;
constexpr double kFarShare = 0.04;
constexpr double kLeastShare = 0.01;  // smaller changes are of no interest
constexpr double kFalseAlarms = 0.01;
constexpr double kMostAlike = 0.9;
constexpr double kNormal = 200;  // degrees of freedom from which on t is practically normal

struct Sample {
  double n = 0;
  double mean = 0;
  double squares = 0;   // of the distances to the mean
  double products = 0;  // of each value with the next
};

Sample sample(const std::vector<double>& all, const std::vector<bool>& far) {
  std::vector<double> v;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (far.empty() || !far[i]) v.push_back(all[i]);
  }
  Sample s{.n = static_cast<double>(v.size())};
  if (v.empty()) return s;
  s.mean = std::accumulate(v.begin(), v.end(), 0.0) / s.n;
  for (std::size_t i = 0; i < v.size(); ++i) {
    s.squares += (v[i] - s.mean) * (v[i] - s.mean);
    if (i + 1 < v.size()) s.products += (v[i] - s.mean) * (v[i + 1] - s.mean);
  }
  return s;
}

// The two-sided probability of a value beyond t. With t = sqrt(v) tan(x) the density is
// cos(x)^(v-1), which Simpson's rule integrates.
double beyond(double t, double v) {
  constexpr int kParts = 400;
  const double from = std::atan(t / std::sqrt(v));
  const double step = (std::numbers::pi / 2 - from) / kParts;
  double sum = 0;
  for (int i = 0; i <= kParts; ++i) {
    const double y = std::pow(std::max(std::cos(from + i * step), 0.0), v - 1);
    sum += y * (i == 0 || i == kParts ? 1 : i % 2 != 0 ? 4 : 2);
  }
  const double scale = std::exp(std::lgamma((v + 1) / 2) - std::lgamma(v / 2));
  return 2 * scale / std::sqrt(std::numbers::pi) * sum * step / 3;
}

}  // namespace

double median(std::vector<double> values) {
  return align::median(values);
}

FarAbove far_above(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return {std::vector<bool>(a.size()), std::vector<bool>(b.size())};
  const double middle_a = median(a);
  const double middle_b = median(b);
  std::vector<double> distances;
  distances.reserve(a.size() + b.size());
  for (const double v : a) distances.push_back(std::abs(v - middle_a));
  for (const double v : b) distances.push_back(std::abs(v - middle_b));
  const double deviation = 1.4826 * median(distances);  // for a normal distribution
  const auto far = [&](const std::vector<double>& values, double middle) {
    const double most = middle + std::max(kFarDeviations * deviation, kFarShare * middle);
    std::vector<bool> all(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) all[i] = values[i] > most;
    return all;
  };
  return {far(a, middle_a), far(b, middle_b)};
}

double student_t(double probability, double freedom) {
  const double v = std::clamp(freedom, 1.0, kNormal);
  double low = 0;
  double high = 1e6;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (beyond(middle, v) > probability ? low : high) = middle;
  }
  return high;
}

std::pair<double, double> Difference::interval() const {
  const double half = student_t(0.05, freedom) * error;
  return {b - a - half, b - a + half};
}

double Difference::noise(std::size_t comparisons) const {
  const double each = kFalseAlarms / static_cast<double>(std::max<std::size_t>(comparisons, 1));
  return std::max(student_t(each, freedom) * error, kLeastShare * std::abs(a));
}

std::optional<Difference> difference(const std::vector<double>& a, const std::vector<double>& b) {
  return difference(a, b, far_above(a, b));
}

std::optional<Difference> difference(const std::vector<double>& a, const std::vector<double>& b,
                                     const FarAbove& far) {
  const Sample x = sample(a, far.a);
  const Sample y = sample(b, far.b);
  if (std::min(x.n, y.n) < static_cast<double>(kFewestUsual)) return std::nullopt;
  const double freedom = x.n + y.n - 2;
  const double together = (x.squares + y.squares) / freedom;
  const double squares = x.squares + y.squares;
  const double alike = squares > 0 ? (x.products + y.products) / squares + 2 / (x.n + y.n) : 0;
  const double r = std::clamp(alike, 0.0, kMostAlike);
  const double fewer = (1 + r) / (1 - r);
  const auto of_mean = [&](const Sample& s) {
    return std::max(s.squares / (s.n - 1), together) / s.n * fewer;
  };
  return Difference{.a = x.mean,
                    .b = y.mean,
                    .error = std::sqrt(of_mean(x) + of_mean(y)),
                    .freedom = std::max(1.0, freedom / fewer)};
}

}  // namespace tprof::diff
