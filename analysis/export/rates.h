// How many bytes each rank moved in each window of a merged trace, as counters for viewers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "export/pen.h"
#include "interpose/format/buckets.h"

namespace tprof::trace_export {

// Calls of one bucket that began in one window.
struct InWindow {
  std::int64_t pid = 0;
  std::int64_t window = 0;
  Bucket bucket = Bucket::ALLGATHER;
  std::uint64_t bytes = 0;
};

// Adds to the entry of these calls, which is one of the last if there is any.
void add(std::vector<InWindow>& all, const InWindow& more);

class Rates {
 public:
  explicit Rates(std::int64_t window_ns) : window_ns_(window_ns) {}

  void add(const std::vector<InWindow>& all);
  // Writes the counters of a rank: a line for each window whose rates are not those of the one
  // before.
  void write(std::int64_t pid, Pen& out) const;

 private:
  using Buckets = std::array<std::vector<std::uint64_t>, kBucketCount>;
  std::int64_t window_ns_;
  std::map<std::int64_t, Buckets> ranks_;
};

}  // namespace tprof::trace_export
