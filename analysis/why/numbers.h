// Statistics of a few numbers: their mean, its error, and their spread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "run/quantile.h"

namespace tprof::why {

using run::median;
using run::quantile;

inline double mean(std::span<const double> of) {
  double sum = 0;
  for (const double x : of) sum += x;
  return of.empty() ? 0 : sum / static_cast<double>(of.size());
}

// The mean of the middle third: more exact than the median, and not moved by a few that are far
// off.
inline double midmean(std::vector<double> of) {
  std::ranges::sort(of);
  return mean(std::span(of).subspan(of.size() / 3, of.size() - 2 * (of.size() / 3)));
}

// The standard error of the mean, assuming independence.
inline double mean_error(std::span<const double> of) {
  if (of.size() < 2) return 0;
  const double middle = mean(of);
  double squares = 0;
  for (const double x : of) squares += (x - middle) * (x - middle);
  const auto n = static_cast<double>(of.size());
  return std::sqrt(squares / (n - 1) / n);
}

// A robust standard deviation, from the median deviation.
inline double width(const std::vector<double>& of) {
  const double middle = median(of);
  std::vector<double> apart;
  for (const double x : of) apart.push_back(std::abs(x - middle));
  return 1.4826 * median(std::move(apart));
}

// The standard error of the median, from width().
inline double median_error(const std::vector<double>& of) {
  return of.size() < 2 ? 0 : 1.2533 * width(of) / std::sqrt(static_cast<double>(of.size()));
}

// A result is not taken for chance if chance gives it less often, to any of those looked at.
inline constexpr double kChance = 0.01;

// Returns the probability of k or more of n events, each with probability `each` (binomial tail).
inline double chance_of(std::size_t k, std::size_t n, double each) {
  if (k == 0 || each >= 1) return 1;
  const auto all = static_cast<double>(n);
  double sum = 0;
  for (auto i = static_cast<double>(k); i <= all; ++i) {
    sum += std::exp(std::lgamma(all + 1) - std::lgamma(i + 1) - std::lgamma(all - i + 1) +
                    i * std::log(each) + (all - i) * std::log1p(-each));
  }
  return sum;
}

// "2nd", "3rd", "11th"
inline std::string ordinal(std::size_t n) {
  constexpr const char* kEnds[] = {"th", "st", "nd", "rd"};
  const std::size_t last = n % 100 / 10 == 1 ? 0 : n % 10;
  return std::to_string(n) + kEnds[last < 4 ? last : 0];
}

}  // namespace tprof::why
