#include "tables/phases.h"

#include <algorithm>
#include <optional>
#include <set>

#include "interpose/format/step_mark.h"

namespace tprof::tables {
namespace {

// Returns the most frequent value, the smaller of two equally frequent ones; nullopt if no value
// repeats.
template <typename T>
std::optional<T> usual(const std::vector<T>& all) {
  std::map<T, std::size_t> times;
  for (const T& one : all) ++times[one];
  const auto most =
      std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; });
  if (most == times.end() || (most->second == 1 && all.size() > 1)) return std::nullopt;
  return most->first;
}

// Finds phases by the order of calls within a step.
class PhaseFinder {
 public:
  PhaseFinder(const RankCalls& rank, std::vector<Pass> passes)
      : rank_(rank), passes_(std::move(passes)), phases_(rank.calls.size()) {}

  std::vector<std::optional<StepPhase>> tell() && {
    find_batches();
    std::map<std::size_t, std::vector<std::uint64_t>> volumes;  // by pass number
    for (const Pass& p : passes_) volumes[p.number].push_back(volume(p.ahead));
    for (const Pass& p : passes_) {
      for (const std::uint32_t i : p.late) phases_[i] = StepPhase::backward;
      const auto most = usual(volumes[p.number]);
      if (most && volume(p.ahead) <= *most) tell_ahead(p.ahead);
    }
    tell_behind();
    return std::move(phases_);
  }

 private:
  bool copy(std::uint32_t i) const { return rank_.kind(i).bucket == Bucket::H2D; }
  bool batch(std::uint32_t i) const { return copy(i) && rank_.kind(i).bytes >= least_batch_; }
  bool collective(std::uint32_t i) const { return tables::collective(rank_.kind(i)); }

  // Finds the smallest size of a batch from copies that recur before backward passes, and whether
  // there are such copies after the first collective too.
  void find_batches() {
    const bool one_step = passes_.empty() || passes_.front().step == passes_.back().step;
    std::set<const CallKind*> seen;
    std::uint64_t largest = 0;
    for (const Pass& p : passes_) {
      for (const std::uint32_t i : p.ahead) {
        const bool again = copy(i) && (!seen.insert(rank_.calls[i].kind).second || one_step);
        if (again) largest = std::max(largest, rank_.kind(i).bytes);
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
        phases_[i] = StepPhase::forward;
        forward_.insert(rank_.calls[i].kind);
      } else if (copy(i) && batch(i) != begun && copies_told_) {
        phases_[i] = begun ? StepPhase::forward : StepPhase::load;
      }
    }
  }

  void tell_behind() {
    std::vector<Places> all;  // by step
    std::vector<std::vector<CallKind>> kinds;
    for (const Pass& p : passes_) {
      if (!p.last) continue;
      kinds.emplace_back();
      for (const std::uint32_t i : all.emplace_back(updates(p))) {
        kinds.back().push_back(rank_.kind(i));
      }
    }
    const auto most = usual(kinds);
    for (std::size_t n = 0; most && n < all.size(); ++n) {
      const auto differs = std::ranges::mismatch(kinds[n], *most).in1 - kinds[n].begin();
      for (std::ptrdiff_t i = 0; i < differs; ++i) {
        phases_[all[n][static_cast<std::size_t>(i)]] = StepPhase::optimizer;
      }
    }
  }

  // Returns the collectives after the last backward pass that may be the optimizer's.
  Places updates(const Pass& p) const {
    Places found;
    for (const std::uint32_t i : p.behind) {
      const bool gathers = rank_.kind(i).bucket == Bucket::ALLGATHER;
      if (batch(i) || (gathers && forward_.contains(&rank_.kind(i)))) break;
      if (collective(i)) found.push_back(i);
    }
    return found;
  }

  const RankCalls& rank_;
  std::vector<Pass> passes_;
  std::vector<std::optional<StepPhase>> phases_;
  std::uint64_t least_batch_ = 0;
  bool copies_told_ = true;
  std::set<const CallKind*> forward_{};  // of collectives
};

// Subtracts the classified calls from a process's calls of other than autograd threads. Nullopt if
// there are fewer.
std::optional<Buckets> left_of(Buckets left, const RankPhases& rank) {
  for (const auto& [key, buckets] : rank.told) {
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const std::optional<read::Amounts> less = without(left[b], buckets[b]);
      if (!less) return std::nullopt;
      left[b] = *less;
    }
  }
  return left;
}

}  // namespace

void add_phases(Phases& phases, const read::Rows& rows) {
  bool autograd = false;
  each_row(rows, [&](const read::Row& row) {
    autograd = autograd || row.thread == ThreadKind::autograd;
  });
  each_row(rows, [&](const read::Row& row) {
    Phase phase = autograd ? Phase::rest : Phase::unknown;
    if (row.thread == ThreadKind::autograd) phase = Phase::backward;
    if (row.thread == ThreadKind::mixed || row.mode == Mode::replayed) phase = Phase::unknown;
    phases[static_cast<std::size_t>(phase)][static_cast<std::size_t>(row.bucket)] += row.amounts;
  });
}

RankPhases::RankPhases(const read::Process& of, const steps::Found& found) : RankCalls(of) {
  const auto steps = found.ranks.find(&of);
  steps_ = steps == found.ranks.end() ? nullptr : &steps->second;
}

// Thread names are genuine if they show autograd calls when the ledger does (anonymised ones do
// not). They are complete if the lines have as many calls.
void RankPhases::end() {
  std::uint64_t in_ledger = 0;
  std::uint64_t in_lines = 0;
  bool mixed = false;
  each_row(*rank, [&](const read::Row& row) {
    mixed = mixed || row.thread == ThreadKind::mixed;
    const bool lines = read::wants_lines(*rank, row.bucket);
    if (row.thread == ThreadKind::autograd && lines) in_ledger += row.amounts.calls;
  });
  for (const auto& [tid, thread] : threads) in_lines += thread.autograd ? thread.calls.size() : 0;
  known = (in_lines == 0) == (in_ledger == 0);
  ordered = all && rank->footer && rank->footer->dropped.empty() && !mixed && in_lines == in_ledger;
  std::vector<std::optional<StepPhase>> by_order(calls.size());
  if (known && ordered && steps_ != nullptr) {
    by_order = PhaseFinder(*this, passes_of(*this, *steps_).all).tell();
  }
  const auto phase_of = [&](const Thread& thread, std::uint32_t i) {
    if (thread.autograd) return std::pair(StepPhase::backward, PhaseSource::none);
    if (thread.name.empty()) return std::pair(StepPhase::other, PhaseSource::none);
    if (calls[i].range) return std::pair(*calls[i].range, PhaseSource::range);
    // PyTorch's data-loading threads.
    if (thread.name.starts_with("pt_data_")) return std::pair(StepPhase::load, PhaseSource::thread);
    if (by_order[i]) return std::pair(*by_order[i], PhaseSource::order);
    return std::pair(StepPhase::other, PhaseSource::none);
  };
  for (auto& [tid, thread] : threads) {
    if (!known) break;
    std::ranges::stable_sort(thread.calls, {}, [&](std::uint32_t i) { return calls[i].ts_ns; });
    std::optional<StepPhase> before;
    for (const std::uint32_t i : thread.calls) {
      const auto key = phase_of(thread, i);
      if (key.second != PhaseSource::none) {
        told[key][static_cast<std::size_t>(kind(i).bucket)] += amounts(i);
      }
      if (before != key.first) changes[tid].insert_or_assign(calls[i].ts_ns, key.first);
      before = key.first;
    }
  }
  let_go();
}

StepPhase RankPhases::at(std::int64_t tid, std::int64_t ts_ns) const {
  const auto of_thread = changes.find(tid);
  if (of_thread == changes.end()) return StepPhase::other;
  const auto next = of_thread->second.upper_bound(ts_ns);
  return next == of_thread->second.begin() ? StepPhase::other : std::prev(next)->second;
}

Rest rest_of(const run::Lines& lines, const steps::Found& found) {
  const auto ranks = lines.each([&](const read::Process& rank) { return RankPhases(rank, found); });
  Rest rest;
  for (const read::Process* p : lines.job().processes) {
    const RankPhases* rank = ranks.of(p);
    if (found.ranks.contains(p) && (rank == nullptr || !rank->ordered)) rest.unordered.push_back(p);
    Buckets left{};
    each_row(*p, [&](const read::Row& row) {
      if (row.thread == ThreadKind::autograd) return;
      left[static_cast<std::size_t>(row.bucket)] += row.amounts;
    });
    if (const auto less = rank == nullptr ? std::nullopt : left_of(left, *rank)) {
      left = *less;
      for (const auto& [key, buckets] : rank->told) add(rest.told[key], buckets);
    }
    add(rest.told[{StepPhase::other, PhaseSource::none}], left);
  }
  return rest;
}

}  // namespace tprof::tables
