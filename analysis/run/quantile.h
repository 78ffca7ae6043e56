// Figures of a few numbers that one outlier does not change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tprof::run {

// The usual is what three quarters have at least: half of the ranks, those of one host of two, may
// be slow.
inline constexpr double kUsual = 0.25;

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

}  // namespace tprof::run
