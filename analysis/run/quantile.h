// Statistics that one outlier does not change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tprof::run {

// Three quarters have the usual value at least: half of the ranks may be slow, as one host of two.
inline constexpr double kUsual = 0.25;

// Returns the number that `share` of them are below; 0 if there are none.
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
