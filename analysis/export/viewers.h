// Viewers of a merged trace show this of a call: a name with its size, and a colour for its bucket.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/format/buckets.h"

namespace tprof::trace_export {

// One of Chrome's reserved names of colours.
std::string_view color_of(Bucket bucket);

// The name of a bucket's calls in lanes of their sums: "AllGather", "H2D".
std::string_view title_of(Bucket bucket);

class CallNames {
 public:
  // "AllGather 32 KiB", or "AllGather" if the size is not known: to be written one after the other.
  struct Name {
    std::string_view what;
    std::string_view size;  // valid until the next name
  };
  Name of(std::string_view function, Bucket bucket, std::optional<std::uint64_t> bytes);

 private:
  struct Known {
    std::uint64_t bytes = 0;
    std::string text;  // empty: none yet
  };
  // A program has few sizes, and writing one takes longer than all else of a line.
  std::array<Known, 64> sizes_;
};

// Slices of a lane have to follow each other or nest: viewers leave out one that ends behind the
// slice that it begins in. Times are measured, so some overlap by nanoseconds, and streams of
// several threads may share a lane. Tells by how much such a slice is written shorter.

class Nesting {
 public:
  void add(std::int64_t lane, std::int64_t begin_ns, std::int64_t dur_ns) {
    if (last_ == nullptr || lane != last_lane_) last_ = &lanes_[last_lane_ = lane];
    last_->push_back({begin_ns, dur_ns, 0});
  }
  // Has to be called behind the last slice. From then on only those that are cut are in memory.
  void finish();

  // Slices that are alike are each cut by as much.
  std::int64_t cut_ns(std::int64_t lane, std::int64_t begin_ns, std::int64_t dur_ns) const;

 private:
  struct Slice {
    std::int64_t begin_ns;
    std::int64_t dur_ns;
    std::int64_t cut_ns;

    std::int64_t end_ns() const { return begin_ns + dur_ns - cut_ns; }
  };
  using Lane = std::vector<Slice>;
  static bool before(const Slice& a, const Slice& b);
  static void cut(Lane& lane);

  std::map<std::int64_t, Lane> lanes_;  // each lane's in order, once finished
  std::int64_t last_lane_ = 0;
  Lane* last_ = nullptr;
};

}  // namespace tprof::trace_export
