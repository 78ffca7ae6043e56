// Figures of a few numbers that one outlier does not change.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tprof::why {

// The number that `share` of them are below; of none, 0.
inline double quantile(std::vector<double> of, double share) {
  if (of.empty()) return 0;
  const auto n = static_cast<std::size_t>(share * static_cast<double>(of.size() - 1));
  std::ranges::nth_element(of, of.begin() + static_cast<std::ptrdiff_t>(n));
  return of[n];
}
inline double median(std::vector<double> of) {
  return quantile(std::move(of), 0.5);
}

inline double mean(std::span<const double> of) {
  double sum = 0;
  for (const double x : of) sum += x;
  return of.empty() ? 0 : sum / static_cast<double>(of.size());
}

// The standard error of their mean, as if they were independent.
inline double mean_error(std::span<const double> of) {
  if (of.size() < 2) return 0;
  const double middle = mean(of);
  double squares = 0;
  for (const double x : of) squares += (x - middle) * (x - middle);
  const auto n = static_cast<double>(of.size());
  return std::sqrt(squares / (n - 1) / n);
}

// The standard deviation that half of them speak for, if they are normally distributed.
inline double width(const std::vector<double>& of) {
  const double middle = median(of);
  std::vector<double> apart;
  for (const double x : of) apart.push_back(std::abs(x - middle));
  return 1.4826 * median(std::move(apart));
}

// The standard error of their median, from that.
inline double median_error(const std::vector<double>& of) {
  return of.size() < 2 ? 0 : 1.2533 * width(of) / std::sqrt(static_cast<double>(of.size()));
}

// "2nd", "3rd", "11th"
inline std::string ordinal(std::size_t n) {
  constexpr const char* kEnds[] = {"th", "st", "nd", "rd"};
  const std::size_t last = n % 100 / 10 == 1 ? 0 : n % 10;
  return std::to_string(n) + kEnds[last < 4 ? last : 0];
}

}  // namespace tprof::why
