#include "filter/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "read/error.h"
#include "steps/rank_steps.h"
#include "text/ranks.h"

namespace tprof::filter {

using read::Process;

namespace {

// Those of the chosen ranks.
void keep_ranks(steps::Found& found, const job::Job& job) {
  const std::set<const Process*> ours(job.processes.begin(), job.processes.end());
  const auto other = [&](const auto& of_rank) { return !ours.contains(of_rank.first); };
  std::erase_if(found.ranks, other);
  std::erase_if(found.lines, other);
}

}  // namespace

Selection::Selection(const run::Lines& whole, const Filter& filter, const Needs& needs)
    : lines_(whole),
      filter_(filter),
      job_(with_ranks(whole.job(), filter.words.ranks, needs.ranks)),
      calls_(filter, whole.job()) {
  if (filter_.words.empty()) return;
  if (const auto few = absent_of(filter_.words.ranks, job_)) notes_.push_back(*few);
  if (filter_.steps || !filter_.phases.empty() || needs.steps) find_steps();
  if (!filter_.phases.empty()) find_phases();
  if (filter_.words.of_calls()) count(needs);
}

// As `summary --by phase` tells them: backward is what autograd's threads called, and the other
// calls as far as ranges, threads and their order tell.
void Selection::find_phases() {
  phases_ =
      lines_.of(job_).each([&](const Process& rank) { return stats::RankPhases(rank, *found_); });
  calls_.phases = &phases_;
  std::vector<const Process*> unordered;
  for (const Process* p : job_.processes) {
    const stats::RankPhases* rank = phases_.of(p);
    if (rank == nullptr) continue;
    if (!rank->ordered) unordered.push_back(p);
    if (rank->known && rank->all) continue;
    throw read::BadInput(p->file, rank->all ? "--phase: the lines do not tell which threads are "
                                              "autograd's, as their names are gone"
                                            : "--phase: more calls than can be told apart; give "
                                              "fewer --ranks");
  }
  if (unordered.empty()) return;
  notes_.push_back(
      fmt::format("{}: the order of calls tells no phase, as not every call has a line on a "
                  "thread with a name; what only the order would tell is in other",
                  steps::names(unordered)));
}

void Selection::find_steps() {
  found_ = steps::find(lines_);
  calls_.found = filter_.steps ? &*found_ : nullptr;
  keep_ranks(*found_, job_);
  if (!filter_.steps) return;
  if (found_->how == steps::How::none) {
    throw read::BadInput("--steps: no steps are known: " + found_->why);
  }
  const auto made = [&](const auto& of_rank) {
    return std::ranges::any_of(
        of_rank.second, [&](const steps::Interval& i) { return filter_.steps->holds(i.step); });
  };
  if (std::ranges::any_of(found_->ranks, made)) return;
  throw read::BadInput(fmt::format("--steps: there are no such steps as {}; there are {}",
                                   filter_.words.steps, text::Ranks(found_->steps).str()));
}

read::Chosen Selection::chosen() const {
  if (!filter_.words.of_calls()) return {};
  read::Chosen chosen = {
      .call = [this](const Process& p, const read::Event& e) { return calls_.call(p, e); },
      .time = [this](const Process& p, const read::DeviceTime& t) { return calls_.time(p, t); }};
  if (!rows_.empty()) {
    chosen.rows = [this](const Process& p) -> const read::Rows& { return rows_.at(&p); };
  }
  return chosen;
}

std::pair<std::uint64_t, std::uint64_t> Selection::lines_of(const Process& rank) const {
  const auto of_rank = lines_of_.find(&rank);
  return of_rank == lines_of_.end() ? std::pair<std::uint64_t, std::uint64_t>() : of_rank->second;
}

}  // namespace tprof::filter
