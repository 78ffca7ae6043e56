// How viewers show a call: a name with its size, and a colour for its bucket.
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

// One of Chrome's reserved colour names.
std::string_view color_of(Bucket bucket);

// The name of a bucket in lanes of sums: "AllGather", "H2D".
std::string_view title_of(Bucket bucket);

class CallNames {
 public:
  // "AllGather 32 KiB", or "AllGather" without a known size, in two parts.
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
  // A cache: a program has few sizes, and formatting one takes longer than the rest of a line.
  std::array<Known, 64> sizes_;
};

// Slices of a lane have to follow each other or nest: viewers drop one that ends after the slice
// that it begins in. Measured times may overlap by nanoseconds, and streams of several threads may
// share a lane. Computes by how much such a slice is shortened.

class Nesting {
 public:
  void add(std::int64_t lane, std::int64_t begin_ns, std::int64_t dur_ns) {
    if (last_ == nullptr || lane != last_lane_) last_ = &lanes_[last_lane_ = lane];
    last_->push_back({begin_ns, dur_ns, 0});
  }
  // Call this after the last slice. From then on only shortened slices are kept.
  void finish();

  // Equal slices are cut equally.
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

  std::map<std::int64_t, Lane> lanes_;  // by lane; sorted once finished
  std::int64_t last_lane_ = 0;
  Lane* last_ = nullptr;
};

}  // namespace tprof::trace_export
