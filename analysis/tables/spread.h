// The spread of durations around their mean.
#pragma once

#include <cstdint>

namespace tprof::tables {

// Adds durations one by one to count, sum, mean and spread (Welford's method, which loses no
// digits).
class Spread {
 public:
  void add(std::uint64_t ns) { add_shares(ns, 1); }
  // Adds calls that took `ns` together, each with its share.
  void add_shares(std::uint64_t ns, std::uint64_t calls);
  void add(const Spread& other);
  // Sets the sums only: the shortest duration and the spread are then not known.
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

}  // namespace tprof::tables
