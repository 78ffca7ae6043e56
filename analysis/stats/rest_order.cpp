#include "stats/rest_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "interpose/format/step_mark.h"

namespace tprof::stats {
namespace {

using Places = std::vector<std::uint32_t>;  // of calls, in their order
using Kinds = std::vector<std::uint32_t>;

bool reduces(Bucket b) {
  return b == Bucket::RESHARDING || b == Bucket::ALLREDUCE || b == Bucket::REDUCE;
}

// What the thread that calls backward() called in a step: before each backward pass, and behind the
// last.
struct Step {
  std::vector<Places> before;
  Places behind;
};

// What most steps have, of two that are as frequent the smaller. Nothing: no two are alike.
template <typename T>
std::optional<T> usual(const std::vector<T>& all) {
  std::map<T, std::size_t> times;
  for (const T& one : all) ++times[one];
  const auto most =
      std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; });
  if (most == times.end() || (most->second == 1 && all.size() > 1)) return std::nullopt;
  return most->first;
}

class Teller {
 public:
  Teller(const RestCalls& rank, const Places& by_time, const std::vector<steps::Interval>& steps)
      : rank_(rank), told_(rank.calls.size()) {
    find_thread();
    for (const steps::Interval& i : steps) cut(by_time, i);
    find_sizes();
  }

  std::vector<std::optional<StepPhase>> tell() && {
    take_gradients();
    look_at_copies();
    tell_forward();
    tell_behind();
    return std::move(told_);
  }

 private:
  const CallKind& kind(std::uint32_t place) const { return rank_.kinds[rank_.calls[place].kind]; }
  bool collective(std::uint32_t place) const {
    const Bucket b = kind(place).bucket;
    return !is_copy(b) && b != Bucket::P2P;
  }
  bool gradient(std::uint32_t place) const {
    return reduces(kind(place).bucket) && kind(place).bytes > kScalarBytes &&
           kind(place).bytes >= largest_reduction_ / kSmallReduction;
  }
  bool batch(std::uint32_t place) const {
    return kind(place).bucket == Bucket::H2D && kind(place).bytes >= least_batch_;
  }

  // That makes the most collectives besides autograd's. Calls of several threads are in no order.
  void find_thread() {
    std::size_t most = 0;
    for (std::uint32_t t = 0; t < rank_.threads.size(); ++t) {
      if (rank_.threads[t].autograd()) continue;
      const Places& calls = rank_.threads[t].calls;
      const auto n = std::ranges::count_if(calls, [&](auto c) { return collective(c); });
      const std::size_t weight =
          1 + calls.size() + static_cast<std::size_t>(n) * rank_.calls.size();
      if (weight > most) thread_ = t;
      most = std::max(most, weight);
    }
  }

  // Of what is copied before the backward passes again and again: what may be a batch of data.
  void find_sizes() {
    for (const RankCall& c : rank_.calls) {
      const CallKind& k = rank_.kinds[c.kind];
      if (reduces(k.bucket)) largest_reduction_ = std::max(largest_reduction_, k.bytes);
    }
    std::vector<std::size_t> times(rank_.kinds.size());
    std::uint64_t largest = 0;
    for (const Step& s : steps_) {
      for (const Places& pass : s.before) {
        for (const std::uint32_t place : pass) {
          const CallKind& k = kind(place);
          const bool again = ++times[rank_.calls[place].kind] > 1 || steps_.size() == 1;
          if (k.bucket == Bucket::H2D && again) largest = std::max(largest, k.bytes);
        }
      }
    }
    least_batch_ = std::max(kScalarBytes, largest / kSmallCopy);
  }

  void cut(const Places& by_time, const steps::Interval& interval) {
    const auto time = [&](std::uint32_t place) { return rank_.calls[place].ts_ns; };
    Step step;
    Places since;
    bool backward = false;  // the last call that was seen is of a backward pass
    const auto first = std::ranges::lower_bound(by_time, interval.from_ns, {}, time);
    for (auto i = first; i != by_time.end() && time(*i) < interval.to_ns; ++i) {
      const RestCalls::Thread& thread = rank_.threads[rank_.calls[*i].thread];
      if (thread.autograd()) {
        if (!backward) step.before.push_back(std::exchange(since, {}));
        backward = true;
      } else if (rank_.calls[*i].thread == thread_) {
        since.push_back(*i);
        backward = false;
      }
    }
    step.behind = std::move(since);
    if (!step.before.empty()) steps_.push_back(std::move(step));
  }

  void take_gradients() {
    std::set<std::uint32_t> activations;
    for (const Step& s : steps_) {
      for (const std::uint32_t place : s.before[0]) activations.insert(rank_.calls[place].kind);
    }
    const auto take = [&](Places& places) {
      const auto end = std::ranges::find_if_not(places, [&](std::uint32_t place) {
        return gradient(place) && !activations.contains(rank_.calls[place].kind);
      });
      for (auto i = places.begin(); i != end; ++i) told_[*i] = StepPhase::backward;
      places.erase(places.begin(), end);
    };
    for (Step& s : steps_) {
      for (std::size_t k = 1; k < s.before.size(); ++k) take(s.before[k]);
      take(s.behind);
    }
  }

  void look_at_copies() {
    for (const Step& s : steps_) {
      for (const Places& pass : s.before) {
        bool begun = false;
        for (const std::uint32_t place : pass) {
          begun = begun || collective(place);
          copies_told_ = copies_told_ && !(begun && batch(place));
        }
      }
    }
  }

  void tell_forward() {
    std::map<std::size_t, std::vector<std::uint64_t>> volumes;  // by the number of the pass
    for (const Step& s : steps_) {
      for (std::size_t k = 0; k < s.before.size(); ++k) volumes[k].push_back(volume(s.before[k]));
    }
    for (const Step& s : steps_) {
      for (std::size_t k = 0; k < s.before.size(); ++k) {
        const std::optional<std::uint64_t> most = usual(volumes[k]);
        if (most && volume(s.before[k]) <= *most) tell_pass(s.before[k]);
      }
    }
  }

  std::uint64_t volume(const Places& places) const {
    std::uint64_t sum = 0;
    for (const std::uint32_t place : places) {
      if (collective(place)) sum = read::saturated_sum(sum, kind(place).bytes);
    }
    return sum;
  }

  void tell_pass(const Places& pass) {
    bool begun = false;
    for (const std::uint32_t place : pass) {
      begun = begun || collective(place);
      if (collective(place)) {
        told_[place] = StepPhase::forward;
        forward_.insert(rank_.calls[place].kind);
      } else if (kind(place).bucket == Bucket::H2D && batch(place) != begun && copies_told_) {
        told_[place] = begun ? StepPhase::forward : StepPhase::load;
      }
    }
  }

  void tell_behind() {
    std::vector<Kinds> all;
    for (const Step& s : steps_) {
      Kinds kinds;
      each_behind(s, [&](std::uint32_t place) { kinds.push_back(rank_.calls[place].kind); });
      all.push_back(std::move(kinds));
    }
    const std::optional<Kinds> most = usual(all);
    if (!most) return;
    for (const Step& s : steps_) {
      std::size_t n = 0;
      bool same = true;
      each_behind(s, [&](std::uint32_t place) {
        same = same && n < most->size() && (*most)[n] == rank_.calls[place].kind;
        ++n;
        if (same) told_[place] = StepPhase::optimizer;
      });
    }
  }

  // The collectives behind the last backward pass that may be the optimizer's.
  template <typename See>
  void each_behind(const Step& s, const See& see) const {
    for (const std::uint32_t place : s.behind) {
      const bool gathers = kind(place).bucket == Bucket::ALLGATHER;
      if (batch(place) || (gathers && forward_.contains(rank_.calls[place].kind))) return;
      if (collective(place)) see(place);
    }
  }

  const RestCalls& rank_;
  std::vector<std::optional<StepPhase>> told_;
  std::uint32_t thread_ = 0;
  std::uint64_t largest_reduction_ = 0;
  std::uint64_t least_batch_ = 0;
  bool copies_told_ = true;
  std::vector<Step> steps_;
  std::set<std::uint32_t> forward_;  // kinds of collectives
};

}  // namespace

std::vector<std::optional<StepPhase>> phases_by_order(const RestCalls& rank,
                                                      const std::vector<std::uint32_t>& by_time,
                                                      const std::vector<steps::Interval>& steps) {
  return Teller(rank, by_time, steps).tell();
}

}  // namespace tprof::stats
