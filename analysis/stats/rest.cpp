#include "stats/rest.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tprof::stats {
namespace {

using read::Process;
using Told = std::map<std::pair<StepPhase, ToldBy>, Buckets>;

// Returns the ledger's calls that no autograd thread made.
Buckets not_autograd(const Process& process) {
  Buckets totals{};
  each_row(process, [&](const read::Row& row) {
    if (row.thread == ThreadKind::autograd) return;
    totals[static_cast<std::size_t>(row.bucket)] += row.amounts;
  });
  return totals;
}

Told told_of(const RankCalls& rank, const std::vector<steps::Interval>* steps) {
  const auto phases = told_phases(rank, steps);
  Told told;
  for (std::uint32_t i = 0; i < rank.calls.size(); ++i) {
    if (!phases[i]) continue;
    told[*phases[i]][static_cast<std::size_t>(rank.kind(i).bucket)] += rank.amounts(i);
  }
  return told;
}

std::optional<Buckets> without(Buckets all, const Told& told) {
  for (const auto& [key, buckets] : told) {
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const std::optional<read::Amounts> left = stats::without(all[b], buckets[b]);
      if (!left) return std::nullopt;
      all[b] = *left;
    }
  }
  return all;
}

// Reduces the calls of a rank to what is told of them, once its last line was read.
struct RankRest : RankCalls {
  RankRest(const Process& rank, const std::vector<steps::Interval>* of_rank)
      : RankCalls(rank), steps(of_rank) {}

  void end() {
    ordered = whole();
    if (named()) told = told_of(*this, ordered ? steps : nullptr);
    let_go();
  }

  const std::vector<steps::Interval>* steps;  // null: not known
  bool ordered = false;
  std::optional<Told> told;
};

}  // namespace

Rest rest_of(const run::Lines& lines, const steps::Found& found) {
  const job::Job& job = lines.job();
  const auto ranks = lines.each([&](const Process& rank) {
    const auto steps = found.ranks.find(&rank);
    return RankRest(rank, steps == found.ranks.end() ? nullptr : &steps->second);
  });
  Rest rest;
  for (const Process* p : job.processes) {
    Buckets left = not_autograd(*p);
    const RankRest* rank = ranks.of(p);
    const bool ordered = rank != nullptr && rank->ordered;
    if (!ordered && found.ranks.contains(p)) rest.unordered.push_back(p);
    if (rank != nullptr && rank->told) {
      if (const std::optional<Buckets> behind = without(left, *rank->told)) {
        left = *behind;
        for (const auto& [key, buckets] : *rank->told) add(rest.told[key], buckets);
      }
    }
    add(rest.told[{StepPhase::other, ToldBy::none}], left);
  }
  return rest;
}

}  // namespace tprof::stats
