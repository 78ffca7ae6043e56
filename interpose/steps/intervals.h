// Which step a moment belongs to: the steps that are marked in the rings and have no line yet.
#pragma once

#include <cstdint>

#include "interpose/base/pages.h"

namespace tprof {

struct StepInterval {
  static constexpr std::uint64_t kOpen = UINT64_MAX;

  std::int64_t step = 0;
  std::uint64_t from_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t to_ns = kOpen;
  bool seen = true;  // of an open range: it was, when the rings were last looked at
};

// In the order of time, apart from one another, so bounded in number that looking through them is
// nothing.
class StepIntervals {
 public:
  // A step from here to there, or without an end yet. One that lies within another, or within what
  // has its line, is none. `step`: below 0 where the mark has no number.
  void add(std::int64_t step, std::uint64_t from_ns, std::uint64_t to_ns) {
    if (from_ns < done_ns_ || to_ns <= from_ns) return;
    for (StepInterval& i : all_) {
      if (i.from_ns == from_ns) {
        i.seen = true;
        if (i.to_ns == StepInterval::kOpen) i.to_ns = to_ns;
        return;
      }
      const bool ended = i.to_ns == StepInterval::kOpen && !i.seen;  // where, a ring will tell
      if (!ended && from_ns < i.to_ns && i.from_ns < to_ns) return;
    }
    append(step, from_ns, to_ns);
  }

  // One step ends here and the next begins.
  void cut(std::int64_t step, std::uint64_t at_ns) {
    if (at_ns < done_ns_) return;
    for (StepInterval& i : all_) {
      if (at_ns <= i.from_ns) return;
      if (i.to_ns == StepInterval::kOpen) i.to_ns = at_ns;
      if (at_ns < i.to_ns) return;
    }
    append(step, at_ns, StepInterval::kOpen);
  }

  // Open ranges are looked for again: one that is neither open any more nor in a ring is lost.
  void forget_seen() {
    for (StepInterval& i : all_) i.seen = false;
  }
  void drop_unseen() {
    std::size_t kept = 0;
    for (const StepInterval& i : all_) {
      if (i.to_ns != StepInterval::kOpen || i.seen) all_.data()[kept++] = i;
    }
    all_.cut(kept);
  }

  const StepInterval* at(std::uint64_t ns) const {
    for (const StepInterval* i = all_.end(); i != all_.begin();) {
      --i;
      if (i->from_ns <= ns && ns < i->to_ns) return i;
    }
    return nullptr;
  }

  // Takes the first, if it ended by then.
  bool take(std::uint64_t by_ns, StepInterval& taken) {
    if (all_.size() == 0 || all_.begin()->to_ns > by_ns) return false;
    taken = *all_.begin();
    done_ns_ = taken.to_ns;
    for (std::size_t i = 1; i < all_.size(); ++i) all_.data()[i - 1] = all_.data()[i];
    all_.cut(all_.size() - 1);
    return true;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  void append(std::int64_t step, std::uint64_t from_ns, std::uint64_t to_ns) {
    if (all_.size() == kMost) return;
    const std::int64_t number = step >= 0 ? step : next_;
    next_ = number + 1;
    all_.push_back({number, from_ns, to_ns});
    if (all_.failed()) return;
    // Two threads' marks are found in the order of the threads.
    for (StepInterval* i = all_.end() - 1; i != all_.begin() && i[0].from_ns < i[-1].from_ns; --i) {
      const StepInterval later = i[-1];
      i[-1] = i[0];
      i[0] = later;
    }
  }

  Pages<StepInterval> all_;
  std::int64_t next_ = 1;
  std::uint64_t done_ns_ = 0;
};

}  // namespace tprof
