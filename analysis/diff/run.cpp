#include "diff/compare.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "steps/pace.h"
#include "summary/summary.h"
#include "why/times.h"
#include "why/why.h"

namespace tprof::diff {
namespace {

// Puts the lengths on the devices beside those by the hosts, which run ahead until they wait.
void put_lengths(const why::Times& times, stats::CallsBySteps& all) {
  for (const std::size_t s : times.counted()) {
    const auto step = all.find(times.steps[s]);
    if (step != all.end()) step->second.device_ns = times.length(s);
  }
}

// Those that are the same on all ranks, without the first.
std::vector<Step> comparable(stats::CallsBySteps all, std::int64_t first, bool by_devices) {
  std::uint64_t ranks = 0;
  std::uint64_t calling = 0;
  for (const auto& [number, step] : all) {
    ranks = std::max(ranks, step.ranks);
    calling = std::max(calling, step.calling);
  }
  std::vector<Step> steps;
  for (auto& [number, step] : all) {
    if (number == first || step.ranks != ranks || step.calling != calling) continue;
    if (by_devices ? step.device_ns == 0 : step.hosts == 0) continue;
    steps.push_back({std::move(step), number});
  }
  return steps;
}

void put_parts(const why::Times& times, Run& run) {
  for (Step& step : run.steps) {
    const auto at = std::ranges::lower_bound(times.steps, step.number) - times.steps.begin();
    step.parts = why::mean_of(times, {static_cast<std::size_t>(at)});
  }
  double unmet = 0;
  double waiting = 0;
  for (const why::RankFacts& rank : times.facts) unmet += static_cast<double>(rank.unmet_ns);
  for (const why::Cell& cell : times.cells) waiting += cell.wait;
  run.unmet_share = waiting > 0 ? unmet / waiting : 0;
}

}  // namespace

Run look_at(const filter::Selection& asked, const diagnose::Findings& findings,
            const std::string& path, bool with_lines) {
  const job::Job& job = asked.job();
  const run::Lines lines = asked.lines();
  const stats::Summary summary = stats::summarise(lines, {.asked = &asked, .findings = findings});
  Run run{.path = path, .job = &job, .ranks = job.ranks.size(), .ended = summary.complete};
  run.only = asked.words();
  run.notes = asked.notes();
  run.world = job.world_size.value_or(static_cast<std::int64_t>(job.ranks.size()));
  const stats::OpKinds kinds(run.world, summary.comms);
  for (const read::Process* p : job.processes) {
    run.ended = run.ended && p->end == read::End::closed;
    stats::each_row(lines.rows(*p), [&](const read::Row& row) {
      if (row.amounts.calls == 0) return;
      const OpKind kind = kinds.of(row, *p);
      run.totals[kind] += row.amounts;
      run.callers[kind].insert(p);
    });
  }
  if (!with_lines) {
    run.no_steps = "lines were not read";
    return run;
  }
  const steps::Found found = asked.found() ? *asked.found() : steps::find(lines);
  run.unreadable = lines.unreadable();
  run.no_steps = found.why;
  if (found.how == steps::How::none) return run;
  run.steps_seen = found.steps.size();
  run.whole_steps = found.whole_steps;
  run.may_run_ahead = steps::may_run_ahead(found);
  stats::CallsBySteps by_number = stats::step_calls(lines, found, kinds);
  run::Run calls = why::run_of(lines, found);
  const why::Times times = why::times_of(calls, job, found);
  run.by_devices = times.known();
  if (run.by_devices) put_lengths(times, by_number);
  if (run.by_devices && run.only.empty()) {
    run.slow_ranks = why::ranks_that_hold_up(lines, found, std::move(calls), times);
  }
  if (const auto& only = asked.filter().steps) {
    std::erase_if(by_number, [&](const auto& step) { return !only->holds(step.first); });
  }
  run.steps = comparable(std::move(by_number), found.steps.front(), run.by_devices);
  if (run.by_devices) put_parts(times, run);
  return run;
}

}  // namespace tprof::diff
