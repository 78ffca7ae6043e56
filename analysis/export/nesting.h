// Slices of a lane have to follow each other or nest: viewers leave out one that ends behind the
// slice that it begins in. Times are measured, so some overlap by nanoseconds, and streams of
// several threads may share a lane. Tells by how much such a slice is written shorter.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace tprof::trace_export {

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
