#include "stats/rest.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "stats/rest_calls.h"
#include "stats/rest_order.h"

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

Told told_of(const RestCalls& rank, const std::vector<steps::Interval>* steps) {
  const auto phases = told_phases(rank, steps);
  Told told;
  for (std::size_t i = 0; i < rank.calls.size(); ++i) {
    if (!phases[i]) continue;
    const RankCall& call = rank.calls[i];
    const CallKind& k = rank.kinds[call.kind];
    told[*phases[i]][static_cast<std::size_t>(k.bucket)] +=
        {.calls = 1,
         .count = k.count,
         .elements = k.elements,
         .bytes = k.bytes,
         .host_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(call.dur_ns, 0))};
  }
  return told;
}

// Subtracts the told calls from the ledger's. False if the ledger has fewer, as in a process whose
// last ledger is older than its lines.
bool take(Buckets& left, const Told& told) {
  for (const auto& [key, buckets] : told) {
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      read::Amounts& from = left[b];
      const read::Amounts& a = buckets[b];
      if (from.calls < a.calls || from.count < a.count || from.elements < a.elements ||
          from.bytes < a.bytes || from.host_ns < a.host_ns) {
        return false;
      }
      from.calls -= a.calls;
      from.count -= a.count;
      from.elements -= a.elements;
      from.bytes -= a.bytes;
      from.host_ns -= a.host_ns;
    }
  }
  return true;
}

void add(Rest& rest, const std::pair<StepPhase, ToldBy>& key, const Buckets& buckets) {
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (buckets[b].calls != 0) rest.told[key][b] += buckets[b];
  }
}

// Reduces the calls of a rank to what is told of them, once its last line was read.
struct RankRest : RestCalls {
  RankRest(const Process& rank, const std::vector<steps::Interval>* of_rank)
      : RestCalls(rank), steps(of_rank) {}

  void end() override {
    ordered = whole();
    if (named()) told = told_of(*this, ordered ? steps : nullptr);
    let_go();
  }

  void state(team::Archive& archive) override { archive(ordered, told); }

  const std::vector<steps::Interval>* steps;  // null: not known
  bool ordered = false;
  std::optional<Told> told;
};

Rest split_rest(const job::Job& job, const collect::Lines& lines, const steps::Found& found) {
  Rest rest;
  for (const Process* p : job.processes) {
    Buckets left = not_autograd(*p);
    const auto* rank = lines.of<RankRest>(p);
    const bool ordered = rank != nullptr && rank->ordered;
    if (!ordered && found.ranks.contains(p)) rest.unordered.push_back(p);
    if (rank != nullptr && rank->told) {
      if (Buckets behind = left; take(behind, *rank->told)) {
        left = behind;
        for (const auto& [key, buckets] : *rank->told) add(rest, key, buckets);
      }
    }
    add(rest, {StepPhase::other, ToldBy::none}, left);
  }
  return rest;
}

}  // namespace

void want_rest(collect::Passes& passes, const steps::Found& found, std::optional<Rest>& to) {
  passes.want(
      [&found](const Process& rank, collect::Collectors& all) {
        const auto steps = found.ranks.find(&rank);
        collect::want<RankRest>(rank, all, steps == found.ranks.end() ? nullptr : &steps->second);
      },
      [&](const collect::Lines& lines) { to = split_rest(passes.job(), lines, found); });
}

}  // namespace tprof::stats
