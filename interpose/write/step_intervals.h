// Finds the step of a moment, for the marked steps that have no line yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "interpose/base/pages.h"

namespace tprof {

// A step of the program.
struct StepInterval {
  static constexpr std::uint64_t kOpen = UINT64_MAX;

  std::int64_t step = 0;
  std::uint64_t ordinal = 0;  // 0 for the first one seen; follows the numbers, if any
  std::uint64_t from_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t to_ns = kOpen;
  std::uint32_t unseen = 0;  // for an open range: how many of the last scans missed it
};

// Steps in order of time, without overlap. They are few, so linear searches are cheap.
class StepIntervals {
 public:
  // Adds a step from `from_ns` to `to_ns`, or an open one (kOpen). Ignores a step that overlaps
  // another, or time that has its line already. `step` is negative if the mark has no number.
  // `lost`: marks may be missing before it. Add steps in order of time if possible.
  void add(std::int64_t step, std::uint64_t from_ns, std::uint64_t to_ns, bool lost = false) {
    if (from_ns < done_ns_ || to_ns <= from_ns) return;
    for (StepInterval& i : all_) {
      if (i.from_ns == from_ns) {
        i.unseen = 0;
        if (i.to_ns == StepInterval::kOpen) i.to_ns = to_ns;
        return;
      }
      const bool ended = i.to_ns == StepInterval::kOpen && i.unseen != 0;  // a ring has the end
      if (!ended && from_ns < i.to_ns && i.from_ns < to_ns) return;
    }
    append(step, from_ns, to_ns, lost);
  }

  // One step ends here and the next begins.
  void cut(std::int64_t step, std::uint64_t at_ns) {
    if (at_ns < done_ns_) return;
    for (StepInterval& i : all_) {
      if (at_ns <= i.from_ns) return;
      if (i.to_ns == StepInterval::kOpen) i.to_ns = at_ns;
      if (at_ns < i.to_ns) return;
    }
    append(step, at_ns, StepInterval::kOpen, false);
  }

  // Notes that so many steps ended before steps were recognized. The next cut ends one more.
  void had_ended(std::size_t steps) {
    last_ = std::max(last_, static_cast<std::int64_t>(steps) + 1);
  }

  // Drops the open step, which turned out not to be one.
  void abandon() {
    if (all_.size() != 0 && all_.end()[-1].to_ns == StepInterval::kOpen) all_.cut(all_.size() - 1);
  }

  // Call this before each scan for open ranges. A range that two scans find neither open nor in a
  // ring is lost. (One scan may miss it while it moves from one to the other.)
  void forget_seen() {
    for (StepInterval& i : all_) ++i.unseen;
  }
  void drop_unseen() {
    all_.erase_if(
        [](const StepInterval& i) { return i.to_ns == StepInterval::kOpen && i.unseen >= 2; });
  }

  const StepInterval* at(std::uint64_t ns) const {
    for (const StepInterval* i = all_.end(); i != all_.begin();) {
      --i;
      if (i->from_ns <= ns && ns < i->to_ns) return i;
    }
    return nullptr;
  }

  std::span<const StepInterval> all() const { return {all_.begin(), all_.size()}; }

  // Takes the first step if it ended by then.
  bool take(std::uint64_t by_ns, StepInterval& taken) {
    if (all_.size() == 0 || all_.begin()->to_ns > by_ns) return false;
    taken = *all_.begin();
    done_ns_ = taken.to_ns;
    all_.erase_first(1);
    return true;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  void append(std::int64_t step, std::uint64_t from_ns, std::uint64_t to_ns, bool lost) {
    if (all_.size() == kMost) return;
    const std::int64_t number = step >= 0 ? step : last_ + 1;
    all_.push_back({number, 0, from_ns, to_ns});
    if (all_.failed()) return;
    // Marks are found thread by thread, so they may come out of order.
    StepInterval* i = all_.end() - 1;
    for (; i != all_.begin() && i[0].from_ns < i[-1].from_ns; --i) std::swap(i[-1], i[0]);
    const StepInterval* later = i + 1 == all_.end() ? nullptr : i + 1;
    if (later != nullptr && number < later->step) {
      const auto before = static_cast<std::uint64_t>(later->step - number);
      i->ordinal = later->ordinal - std::min(before, later->ordinal);
      return;
    }
    // Lost marks count, too, so that all ranks agree. Numbers may begin again, and a program may
    // mark only some of its steps.
    const bool ahead = ordinals_ != 0 && number > last_;
    const auto by = ahead ? static_cast<std::uint64_t>(number - last_) : 1;
    ordinals_ += lost ? std::max(by / stride_, std::uint64_t{1}) : 1;
    if (ahead && !lost) stride_ = by;
    i->ordinal = ordinals_ - 1;
    last_ = number;
  }

  Pages<StepInterval> all_;
  std::int64_t last_ = 0;       // number of the last step
  std::uint64_t stride_ = 1;    // distance of consecutive numbers
  std::uint64_t ordinals_ = 0;  // the last step's ordinal + 1
  std::uint64_t done_ns_ = 0;
};

}  // namespace tprof
