#include "stats/rest_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "interpose/format/step_mark.h"
#include "stats/passes.h"

namespace tprof::stats {
namespace {

using Kinds = std::vector<std::uint32_t>;

// Returns what most steps have, and the smaller of two that are as frequent. Nullopt if no two are
// alike.
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
      : rank_(rank), told_(rank.calls.size()), steps_(passes_of(rank, by_time, steps).steps) {
    find_sizes();
  }

  std::vector<std::optional<StepPhase>> tell() && {
    tell_gradients();
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
  bool batch(std::uint32_t place) const {
    return kind(place).bucket == Bucket::H2D && kind(place).bytes >= least_batch_;
  }

  // Finds how large a batch of data is at least, from what is copied again and again before the
  // backward passes.
  void find_sizes() {
    std::vector<std::size_t> times(rank_.kinds.size());
    std::uint64_t largest = 0;
    for (const StepPasses& s : steps_) {
      for (const Pass& pass : s.passes) {
        for (const std::uint32_t place : pass.before) {
          const CallKind& k = kind(place);
          const bool again = ++times[rank_.calls[place].kind] > 1 || steps_.size() == 1;
          if (k.bucket == Bucket::H2D && again) largest = std::max(largest, k.bytes);
        }
      }
    }
    least_batch_ = std::max(kScalarBytes, largest / kSmallCopy);
  }

  void tell_gradients() {
    for (const StepPasses& s : steps_) {
      for (const Pass& pass : s.passes) {
        for (const std::uint32_t place : pass.late) told_[place] = StepPhase::backward;
      }
    }
  }

  void look_at_copies() {
    for (const StepPasses& s : steps_) {
      for (const Pass& pass : s.passes) {
        bool begun = false;
        for (const std::uint32_t place : pass.before) {
          begun = begun || collective(place);
          copies_told_ = copies_told_ && !(begun && batch(place));
        }
      }
    }
  }

  void tell_forward() {
    std::map<std::size_t, std::vector<std::uint64_t>> volumes;  // by the number of the pass
    for (const StepPasses& s : steps_) {
      for (std::size_t k = 0; k < s.passes.size(); ++k) {
        volumes[k].push_back(volume(s.passes[k].before));
      }
    }
    for (const StepPasses& s : steps_) {
      for (std::size_t k = 0; k < s.passes.size(); ++k) {
        const Places& before = s.passes[k].before;
        const std::optional<std::uint64_t> most = usual(volumes[k]);
        if (most && volume(before) <= *most) tell_pass(before);
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
    for (const StepPasses& s : steps_) {
      Kinds kinds;
      each_behind(s, [&](std::uint32_t place) { kinds.push_back(rank_.calls[place].kind); });
      all.push_back(std::move(kinds));
    }
    const std::optional<Kinds> most = usual(all);
    if (!most) return;
    for (const StepPasses& s : steps_) {
      std::size_t n = 0;
      bool same = true;
      each_behind(s, [&](std::uint32_t place) {
        same = same && n < most->size() && (*most)[n] == rank_.calls[place].kind;
        ++n;
        if (same) told_[place] = StepPhase::optimizer;
      });
    }
  }

  // Visits the collectives after the last backward pass that may be the optimizer's.
  template <typename See>
  void each_behind(const StepPasses& s, const See& see) const {
    for (const std::uint32_t place : s.behind) {
      const bool gathers = kind(place).bucket == Bucket::ALLGATHER;
      if (batch(place) || (gathers && forward_.contains(rank_.calls[place].kind))) return;
      if (collective(place)) see(place);
    }
  }

  const RestCalls& rank_;
  std::vector<std::optional<StepPhase>> told_;
  std::vector<StepPasses> steps_;
  std::uint64_t least_batch_ = 0;
  bool copies_told_ = true;
  std::set<std::uint32_t> forward_;  // kinds of collectives
};

}  // namespace

std::vector<std::optional<StepPhase>> phases_by_order(const RestCalls& rank,
                                                      const std::vector<std::uint32_t>& by_time,
                                                      const std::vector<steps::Interval>& steps) {
  return Teller(rank, by_time, steps).tell();
}

std::vector<std::optional<std::pair<StepPhase, ToldBy>>> told_phases(
    const RestCalls& rank, const std::vector<steps::Interval>* steps) {
  std::vector<std::optional<StepPhase>> by_order(rank.calls.size());
  if (steps != nullptr) {
    std::vector<std::uint32_t> by_time(rank.calls.size());
    std::iota(by_time.begin(), by_time.end(), 0U);
    std::ranges::stable_sort(by_time, {}, [&](std::uint32_t i) { return rank.calls[i].ts_ns; });
    by_order = phases_by_order(rank, by_time, *steps);
  }
  std::vector<std::optional<std::pair<StepPhase, ToldBy>>> told(rank.calls.size());
  for (std::size_t i = 0; i < rank.calls.size(); ++i) {
    const RankCall& call = rank.calls[i];
    const RestCalls::Thread& thread = rank.threads[call.thread];
    if (thread.autograd() || thread.name.empty()) continue;
    if (call.range) {
      told[i].emplace(*call.range, ToldBy::range);
    } else if (thread.loads()) {
      told[i].emplace(StepPhase::load, ToldBy::thread);
    } else if (by_order[i]) {
      told[i].emplace(*by_order[i], ToldBy::order);
    }
  }
  return told;
}

}  // namespace tprof::stats
