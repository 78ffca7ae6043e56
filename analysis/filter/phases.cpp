#include "filter/phases.h"

#include <algorithm>
#include <numeric>

#include "read/error.h"
#include "stats/told_phases.h"

namespace tprof::filter {
namespace {

using read::Process;
using stats::StepPhase;

PhaseRuns runs_of(const stats::RankCalls& rank, const std::vector<steps::Interval>* steps) {
  const auto told = stats::told_phases(rank, steps);
  PhaseRuns runs;
  for (const stats::RankCalls::Thread& thread : rank.threads) {
    std::vector<std::uint32_t> calls = thread.calls;
    std::ranges::stable_sort(calls, {}, [&](std::uint32_t i) { return rank.calls[i].ts_ns; });
    auto& of_thread = runs[thread.tid];
    for (const std::uint32_t i : calls) {
      const StepPhase phase = thread.autograd() ? StepPhase::backward
                              : told[i]         ? told[i]->first
                                                : StepPhase::other;
      if (of_thread.empty() || of_thread.back().second != phase) {
        of_thread.emplace_back(rank.calls[i].ts_ns, phase);
      }
    }
  }
  return runs;
}

struct RankPhases : stats::RankCalls {
  RankPhases(const Process& rank, const std::vector<steps::Interval>* of_rank)
      : RankCalls(rank), steps(of_rank) {}

  void end() {
    ordered = whole();
    known = all && named();
    if (known) runs = runs_of(*this, ordered ? steps : nullptr);
    let_go();
  }

  const std::vector<steps::Interval>* steps;  // null: not known
  bool ordered = false;
  bool known = false;
  PhaseRuns runs;
};

}  // namespace

StepPhase PhasesOfRanks::at(const Process& rank, std::int64_t thread, std::int64_t ts_ns) const {
  const auto of_rank = ranks.find(&rank);
  if (of_rank == ranks.end()) return StepPhase::other;
  const auto of_thread = of_rank->second.find(thread);
  if (of_thread == of_rank->second.end()) return StepPhase::other;
  const auto next = std::ranges::upper_bound(of_thread->second, ts_ns, {},
                                             &std::pair<std::int64_t, StepPhase>::first);
  return next == of_thread->second.begin() ? StepPhase::other : std::prev(next)->second;
}

PhasesOfRanks phases_of(const run::Lines& lines, const steps::Found& found) {
  PhasesOfRanks phases;
  const auto ranks = lines.each([&](const Process& rank) {
    const auto steps = found.ranks.find(&rank);
    return RankPhases(rank, steps == found.ranks.end() ? nullptr : &steps->second);
  });
  for (const Process* p : lines.job().processes) {
    RankPhases* rank = ranks.of(p);
    if (rank == nullptr) continue;
    if (!rank->known) {
      throw read::BadInput(p->file, rank->all ? "--phase: the lines do not tell which threads are "
                                                "autograd's, as their names are gone"
                                              : "--phase: more calls than can be told apart; give "
                                                "fewer --ranks");
    }
    if (!rank->ordered) phases.unordered.push_back(p);
    phases.ranks[p] = std::move(rank->runs);
  }
  return phases;
}

}  // namespace tprof::filter
