// Joins the known computation of a device into intervals, which get a line each.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tprof::device {

// Times are on the host's clock. unsure: the device may or may not have computed.
struct Interval {
  std::uint64_t from_ns;
  std::uint64_t to_ns;
  bool unsure = false;
};

// Joins the intervals of one device. `put(Interval, idle_from_ns)` writes an interval, and since
// when the device had certainly been idle before it; it returns false if there was no room. Lost
// intervals are later written as one unsure interval.
class Intervals {
 public:
  // Back-to-back kernels are less than this apart. Such gaps count as computation, or each kernel
  // would have a line.
  static constexpr std::uint64_t kNoGapNs = 10'000;
  // A long interval is written in pieces of this length, so that a kill loses no more.
  static constexpr std::uint64_t kPieceNs = 200'000'000;

  // Adds intervals in order of time. Between two of them the device was idle.
  template <typename Put>
  void add(const Interval& next, Put&& put) {
    if (held_ && !joins(next)) {
      if (touches(next)) last_.to_ns = next.from_ns;
      flush(put);
    }
    if (held_) {
      last_.to_ns = std::max(last_.to_ns, next.to_ns);
    } else {
      last_ = next;
      held_ = true;
    }
  }

  // Everything up to `until_ns` is known.
  template <typename Put>
  void known(std::uint64_t until_ns, Put&& put) {
    if (!held_) return;
    if (lost_) last_.to_ns = std::max(last_.to_ns, until_ns);
    const bool ended = until_ns > last_.to_ns + kNoGapNs;
    if (ended || lost_ || last_.to_ns - last_.from_ns >= kPieceNs) flush(put);
  }

  // Nothing is known of what comes next. An interval of length 0 marks until when the device was
  // idle.
  template <typename Put>
  void end(std::uint64_t until_ns, Put&& put) {
    known(until_ns, put);
    if (held_) flush(put);
    if (!held_ && any_ && until_ns > idle_from_ns_) put({until_ns, until_ns, true}, idle_from_ns_);
    held_ = lost_ = any_ = false;
  }

 private:
  bool touches(const Interval& next) const { return next.from_ns <= last_.to_ns + kNoGapNs; }
  bool joins(const Interval& next) const {
    const bool too_short = next.to_ns - next.from_ns <= kNoGapNs;
    return lost_ || (touches(next) && (next.unsure == last_.unsure || too_short));
  }

  template <typename Put>
  void flush(Put&& put) {
    if (put(last_, any_ ? idle_from_ns_ : last_.from_ns)) {
      idle_from_ns_ = last_.to_ns;
      any_ = true;
      held_ = lost_ = false;
    } else {
      last_.unsure = lost_ = true;
    }
  }

  Interval last_{};
  bool held_ = false;               // `last_` is not written yet
  bool lost_ = false;               // the last one found no room
  bool any_ = false;                // one was written since the beginning or end()
  std::uint64_t idle_from_ns_ = 0;  // end of the last one written
};

}  // namespace tprof::device
