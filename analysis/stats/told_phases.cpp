#include "stats/told_phases.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "interpose/format/step_mark.h"
#include "stats/passes.h"

namespace tprof::stats {
namespace {

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

// Tells phases by the order of the calls within a step.
class Teller {
 public:
  Teller(const RankCalls& rank, std::vector<Pass> passes)
      : rank_(rank), passes_(std::move(passes)), told_(rank.calls.size()) {
    find_batches();
  }

  std::vector<std::optional<StepPhase>> tell() && {
    std::map<std::size_t, std::vector<std::uint64_t>> volumes;  // by the number of the pass
    for (const Pass& p : passes_) volumes[p.number].push_back(volume(p.ahead));
    std::map<std::size_t, std::optional<std::uint64_t>> most;
    for (const auto& [number, all] : volumes) most[number] = usual(all);
    for (const Pass& p : passes_) {
      for (const std::uint32_t i : p.late) told_[i] = StepPhase::backward;
      if (most[p.number] && volume(p.ahead) <= *most[p.number]) tell_ahead(p.ahead);
    }
    tell_behind();
    return std::move(told_);
  }

 private:
  bool batch(std::uint32_t i) const {
    return rank_.kind(i).bucket == Bucket::H2D && rank_.kind(i).bytes >= least_batch_;
  }
  bool collective(std::uint32_t i) const { return stats::collective(rank_.kind(i)); }

  // Finds how large a batch of data is at least, from what is copied again and again ahead of the
  // backward passes. And whether such copies are made behind the first collective too.
  void find_batches() {
    const bool one_step = passes_.empty() || passes_.front().step == passes_.back().step;
    std::map<std::uint32_t, std::size_t> times;
    std::uint64_t largest = 0;
    for (const Pass& p : passes_) {
      for (const std::uint32_t i : p.ahead) {
        if (rank_.kind(i).bucket != Bucket::H2D) continue;
        if (++times[rank_.calls[i].kind] > 1 || one_step) {
          largest = std::max(largest, rank_.kind(i).bytes);
        }
      }
    }
    least_batch_ = std::max(kScalarBytes, largest / kSmallCopy);
    copies_told_ = std::ranges::all_of(passes_, [&](const Pass& p) {
      const auto begun = std::ranges::find_if(p.ahead, [&](auto i) { return collective(i); });
      return std::none_of(begun, p.ahead.end(), [&](auto i) { return batch(i); });
    });
  }

  std::uint64_t volume(const Places& calls) const {
    std::uint64_t sum = 0;
    for (const std::uint32_t i : calls) {
      if (collective(i)) sum = read::saturated_sum(sum, rank_.kind(i).bytes);
    }
    return sum;
  }

  void tell_ahead(const Places& calls) {
    bool begun = false;
    for (const std::uint32_t i : calls) {
      if (collective(i)) {
        begun = true;
        told_[i] = StepPhase::forward;
        forward_.insert(rank_.calls[i].kind);
      } else if (rank_.kind(i).bucket == Bucket::H2D && batch(i) != begun && copies_told_) {
        told_[i] = begun ? StepPhase::forward : StepPhase::load;
      }
    }
  }

  void tell_behind() {
    std::vector<std::vector<std::uint32_t>> all;  // kinds, of each step
    for (const Pass& p : passes_) {
      if (!p.last) continue;
      auto& kinds = all.emplace_back();
      for (const std::uint32_t i : updates(p)) kinds.push_back(rank_.calls[i].kind);
    }
    const auto most = usual(all);
    if (!most) return;
    for (const Pass& p : passes_) {
      auto expected = most->begin();
      for (const std::uint32_t i : updates(p)) {
        if (expected == most->end() || *expected++ != rank_.calls[i].kind) break;
        told_[i] = StepPhase::optimizer;
      }
    }
  }

  // Returns the collectives after the last backward pass that may be the optimizer's.
  Places updates(const Pass& p) const {
    Places calls;
    for (const std::uint32_t i : p.behind) {
      const bool gathers = rank_.kind(i).bucket == Bucket::ALLGATHER;
      if (batch(i) || (gathers && forward_.contains(rank_.calls[i].kind))) break;
      if (collective(i)) calls.push_back(i);
    }
    return calls;
  }

  const RankCalls& rank_;
  std::vector<Pass> passes_;
  std::vector<std::optional<StepPhase>> told_;
  std::uint64_t least_batch_ = 0;
  bool copies_told_ = true;
  std::set<std::uint32_t> forward_;  // kinds of collectives
};

// Takes them from the ledger's calls that no autograd thread made. Nullopt if there are fewer.
std::optional<Buckets> left_of(const read::Process& process, const RankPhases* told) {
  Buckets left{};
  each_row(process, [&](const read::Row& row) {
    if (row.thread == ThreadKind::autograd) return;
    left[static_cast<std::size_t>(row.bucket)] += row.amounts;
  });
  if (told == nullptr) return left;
  for (const auto& [key, buckets] : told->told) {
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const std::optional<read::Amounts> less = without(left[b], buckets[b]);
      if (!less) return std::nullopt;
      left[b] = *less;
    }
  }
  return left;
}

}  // namespace

RankPhases::RankPhases(const read::Process& rank, const steps::Found& found) : RankCalls(rank) {
  const auto steps = found.ranks.find(&rank);
  steps_ = steps == found.ranks.end() ? nullptr : &steps->second;
}

void RankPhases::end() {
  ordered = whole();
  known = named();
  if (!known) return let_go();
  std::vector<std::optional<StepPhase>> by_order(calls.size());
  if (ordered && steps_ != nullptr) by_order = Teller(*this, passes_of(*this, *steps_).all).tell();
  const auto phase_of = [&](std::uint32_t i, const Thread& thread) {
    if (calls[i].range) return std::pair(*calls[i].range, ToldBy::range);
    if (thread.loads()) return std::pair(StepPhase::load, ToldBy::thread);
    if (by_order[i]) return std::pair(*by_order[i], ToldBy::order);
    return std::pair(StepPhase::other, ToldBy::none);
  };
  for (Thread& thread : threads) {
    std::ranges::stable_sort(thread.calls, {}, [&](std::uint32_t i) { return calls[i].ts_ns; });
    auto& of_thread = changes[thread.tid];
    for (const std::uint32_t i : thread.calls) {
      StepPhase phase = thread.autograd() ? StepPhase::backward : StepPhase::other;
      if (!thread.autograd() && !thread.name.empty()) {
        const auto [is, by] = phase_of(i, thread);
        phase = is;
        if (by != ToldBy::none) {
          told[{is, by}][static_cast<std::size_t>(kind(i).bucket)] += amounts(i);
        }
      }
      if (of_thread.empty() || of_thread.back().second != phase) {
        of_thread.emplace_back(calls[i].ts_ns, phase);
      }
    }
  }
  let_go();
}

StepPhase RankPhases::at(std::int64_t thread, std::int64_t ts_ns) const {
  const auto of_thread = changes.find(thread);
  if (of_thread == changes.end()) return StepPhase::other;
  const auto next = std::ranges::upper_bound(of_thread->second, ts_ns, {},
                                             &std::pair<std::int64_t, StepPhase>::first);
  return next == of_thread->second.begin() ? StepPhase::other : std::prev(next)->second;
}

Rest rest_of(const run::Lines& lines, const steps::Found& found) {
  const auto ranks = lines.each([&](const read::Process& rank) { return RankPhases(rank, found); });
  Rest rest;
  for (const read::Process* p : lines.job().processes) {
    const RankPhases* rank = ranks.of(p);
    if (found.ranks.contains(p) && (rank == nullptr || !rank->ordered)) rest.unordered.push_back(p);
    const auto left = left_of(*p, rank);
    if (rank != nullptr && left) {
      for (const auto& [key, buckets] : rank->told) add(rest.told[key], buckets);
    }
    add(rest.told[{StepPhase::other, ToldBy::none}], left ? *left : *left_of(*p, nullptr));
  }
  return rest;
}

}  // namespace tprof::stats
