// How durations lie about their mean.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tprof::stats {

// What a line says may be anything.
inline std::uint64_t not_below_0(std::int64_t ns) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
}

// Durations one by one into count, sum, mean and spread (Welford's method, which loses no digits).
class Spread {
 public:
  void add(std::uint64_t ns) { add_shares(ns, 1); }
  // Of calls that took `ns` together, each its share.
  void add_shares(std::uint64_t ns, std::uint64_t calls);
  void add(const Spread& other);
  // Of sums only: the shortest and the spread are not known then.
  void set_sums(std::uint64_t n, std::uint64_t sum_ns, std::uint64_t longest_ns);

  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t min_ns = 0;
  std::uint64_t max_ns = 0;
  double mean_ns = 0;
  double std_ns() const;  // of all of them, not of a sample

 private:
  double squares_ = 0;  // of the distances to the mean
};

}  // namespace tprof::stats
