#include "tests/golden/big_step.h"

#include <algorithm>

namespace tprof::test {
namespace {

constexpr std::int64_t kUs = 1000;
constexpr std::int64_t kForward = 1000 * kUs, kBackward = 2000 * kUs, kUpdate = 500 * kUs;
constexpr std::int64_t kCallEvery = 15 * kUs;  // the host runs ahead of its device

class Simulated {
 public:
  Simulated(int units, bool replicas, double pace)
      : units_(units), replicas_(replicas), pace_{1, 1, pace} {}

  Step run() {
    copy(kInput, 20 * kUs);
    Each<std::int64_t> free{};
    for (auto& t : free) t = 60 * kUs;
    Each<std::int64_t> gathered = collective(kGather, free);
    for (int unit = 0; unit < units_; ++unit) {
      const Each<std::int64_t> begun = later(free, gathered);
      if (unit + 1 < units_) gathered = collective(kGather, begun);
      free = compute(begun, kForward);
    }
    // The root unit, 0, stays gathered.
    if (units_ > 1) gathered = collective(kGatherAgain, free);
    Each<std::int64_t> done = free;
    for (int unit = units_ - 1; unit >= 0; --unit) {
      const Each<std::int64_t> begun = later(free, gathered);
      if (unit > 1) gathered = collective(kGatherAgain, begun);
      free = compute(begun, kBackward);
      done = collective(kScatter, free);
      if (replicas_) done = collective(kSum, done);
    }
    free = compute(collective(kNorm, later(free, done)), kUpdate);
    const std::int64_t end = *std::ranges::max_element(free);
    copy(kLoss, end);
    step_.length_ns = end + 150 * kUs;
    for (Call& call : step_.calls) expose(call);
    return std::move(step_);
  }

 private:
  static Each<std::int64_t> later(Each<std::int64_t> a, const Each<std::int64_t>& b) {
    for (int c = 0; c < kClasses; ++c) a[c] = std::max(a[c], b[c]);
    return a;
  }

  static std::int64_t takes(Which which) {
    if (which == kNorm) return 120 * kUs;
    return which == kSum ? 250 * kUs : which == kScatter ? 400 * kUs : 300 * kUs;
  }

  std::int64_t next_call() { return 10 * kUs + kCallEvery * std::ssize(step_.calls); }

  void copy(Which which, std::int64_t at) {
    Call call{which, next_call()};
    for (Span& span : call.device) span = {at, at + 15 * kUs};
    step_.calls.push_back(call);
  }

  // Returns when it is over. It begins behind the one before it on its communicator, and moves data
  // from when the last of its ranks has come.
  Each<std::int64_t> collective(Which which, const Each<std::int64_t>& called) {
    Call call{which, next_call()};
    const Group group = replicas_ || kAll[which].group == kNone ? kAll[which].group : kWorld;
    Each<std::int64_t> begin = later(called, over_[group]);
    const bool all = group != kShard;
    const std::int64_t together = std::max(begin[kBesideSlow], begin[kSlow]);
    const std::int64_t everybody = std::max(together, begin[kOthers]);
    for (int c = 0; c < kClasses; ++c) {
      const std::int64_t last = all ? everybody : c == kOthers ? begin[kOthers] : together;
      over_[group][c] = last + takes(which);
      call.device[c] = {begin[c], over_[group][c]};
    }
    step_.calls.push_back(call);
    return over_[group];
  }

  Each<std::int64_t> compute(const Each<std::int64_t>& begin, std::int64_t ns) {
    Each<std::int64_t> end{};
    for (int c = 0; c < kClasses; ++c) {
      end[c] = begin[c] + static_cast<std::int64_t>(static_cast<double>(ns) * pace_[c]);
      std::vector<Span>& all = step_.computing[c];
      if (!all.empty() && all.back().to == begin[c]) {
        all.back().to = end[c];
      } else {
        all.push_back({begin[c], end[c]});
      }
    }
    return end;
  }

  void expose(Call& call) const {
    for (int c = 0; c < kClasses; ++c) {
      const Span& moving = call.device[c];
      call.exposed_ns[c] = moving.to - moving.from;
      for (const Span& busy : step_.computing[c]) {
        const auto both = std::min(busy.to, moving.to) - std::max(busy.from, moving.from);
        call.exposed_ns[c] -= std::max<std::int64_t>(both, 0);
      }
    }
  }

  int units_;
  bool replicas_;
  Each<double> pace_;
  Step step_;
  Each<std::int64_t> over_[4] = {};  // the last collective of each group
};

}  // namespace

Step step_of(int units, bool replicas, double pace) {
  return Simulated(units, replicas, pace).run();
}

}  // namespace tprof::test
