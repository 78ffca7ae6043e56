#include "why/times.h"

#include <limits>
#include <map>

#include "why/cells.h"
#include "why/why.h"

namespace tprof::why {
namespace {

std::string why_not(const job::Job& job, const steps::Found& found) {
  if (found.how == steps::How::none) return "no steps are known: " + found.why;
  const bool timed = std::ranges::any_of(job.processes, [](const read::Process* p) {
    return std::ranges::any_of(read::rows_of(*p),
                               [](const read::Row& row) { return row.amounts.device_timed != 0; });
  });
  return timed ? "" : "nothing was timed on the device (TPROF_TIMING=events)";
}

// Keeps every nth step, so that the cells fit.
std::vector<std::int64_t> kept_steps(const steps::Found& found, std::size_t ranks) {
  const std::size_t every = found.steps.size() * ranks / kMostCells + 1;
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < found.steps.size(); i += every) kept.push_back(found.steps[i]);
  return kept;
}

// Drops ranks that are known in far fewer steps than others: a step counts only if all ranks are
// known. With a schedule all ranks are known in a few steps only.
void leave_out_unknown(Times& times) {
  const std::size_t n = times.steps.size();
  std::vector<std::size_t> known;
  for (std::size_t r = 0; r < times.ranks.size(); ++r) {
    known.push_back(static_cast<std::size_t>(std::ranges::count_if(times.of(r), &Cell::known)));
  }
  const std::size_t most = known.empty() ? 0 : *std::ranges::max_element(known);
  std::size_t kept = 0;
  for (std::size_t r = 0; r < times.ranks.size(); ++r) {
    if (known[r] == 0 || known[r] * 2 <= most) continue;
    if (kept != r) {
      std::ranges::copy(times.of(r), times.cells.begin() + static_cast<std::ptrdiff_t>(kept * n));
      times.ranks[kept] = times.ranks[r];
      times.facts[kept] = times.facts[r];
    }
    ++kept;
  }
  times.ranks.resize(kept);
  times.facts.resize(kept);
  times.cells.resize(kept * n);
}

// Calls f(interval, step index) for the kept steps of a rank.
template <typename F>
void each_kept(const steps::Found& found, const Times& times, const read::Process* rank, F&& f) {
  for (const steps::Interval& i : found.ranks.at(rank)) {
    const auto kept = std::ranges::lower_bound(times.steps, i.step);
    if (kept == times.steps.end() || *kept != i.step) continue;
    f(i, static_cast<std::size_t>(kept - times.steps.begin()));
  }
}

void find_usual(Times& times) {
  for (std::size_t s = 0; s < times.steps.size(); ++s) {
    float least = std::numeric_limits<float>::max();
    for (std::size_t r = 0; r < times.ranks.size(); ++r) {
      const Cell& c = times.of(r)[s];
      if (!c.known()) continue;
      least = std::min(least, c.exposed);
    }
    times.least_exposed.push_back(least);
  }
}

// The program's marks give the lengths of steps even without device times.
void take_lengths(const steps::Found& found, Times& times) {
  for (std::size_t r = 0; r < times.ranks.size(); ++r) {
    each_kept(found, times, times.ranks[r], [&](const steps::Interval& i, std::size_t s) {
      times.cells[r * times.steps.size() + s].length = static_cast<float>(i.to_ns - i.from_ns);
    });
  }
  leave_out_unknown(times);
  find_usual(times);
  times.in_pace = steps::in_pace(found);
  times.hosts_may_run_ahead = steps::may_run_ahead(found);
}

}  // namespace

double Times::length(std::size_t step) const {
  float longest = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Cell& c = of(r)[step];
    if (!c.known()) return 0;
    longest = std::max(longest, c.length - held_up(r, step));
  }
  return longest;
}

std::vector<std::size_t> Times::counted() const {
  std::vector<std::size_t> all;
  for (std::size_t s = steps.size() < 3 ? 0 : 1; s < steps.size(); ++s) {
    if (length(s) > 0) all.push_back(s);
  }
  return all;
}

std::vector<steps::Interval> on_device(const Times& times, const steps::Found& found,
                                       std::size_t rank) {
  std::vector<steps::Interval> all;
  each_kept(found, times, times.ranks[rank], [&](steps::Interval i, std::size_t s) {
    const Cell& cell = times.of(rank)[s];
    if (!cell.known()) return;
    i.from_ns += cell.behind_ns;
    i.to_ns = i.from_ns + std::llround(cell.length);
    all.push_back(i);
  });
  return all;
}

Cell mean_of(const Times& times, const std::vector<std::size_t>& steps) {
  constexpr float Cell::*kParts[] = {&Cell::length,  &Cell::compute, &Cell::unsure, &Cell::hidden,
                                     &Cell::exposed, &Cell::wait,    &Cell::missing};
  Cell all;
  for (const auto part : kParts) {
    double sum = 0;
    for (std::size_t r = 0; r < times.ranks.size(); ++r) {
      for (const std::size_t s : steps) sum += times.of(r)[s].*part;
    }
    all.*part = static_cast<float>(sum / static_cast<double>(times.ranks.size() * steps.size()));
  }
  return all;
}

Times times_of(const run::Run& run, const job::Job& job, const steps::Found& found) {
  Times times;
  times.why = run.no_room_for != 0 ? needs_room(run) : why_not(job, found);
  if (found.how == steps::How::none) return times;
  for (const auto& [rank, intervals] : found.ranks) times.ranks.push_back(rank);
  std::ranges::sort(times.ranks, {}, [](const read::Process* p) { return p->header.rank; });
  times.steps = kept_steps(found, times.ranks.size());
  times.steps_of_run = found.steps.size();
  times.cells.resize(times.ranks.size() * times.steps.size());
  times.facts.resize(times.ranks.size());
  if (!times.known()) {
    take_lengths(found, times);
    return times;
  }
  std::map<const read::Process*, std::size_t> places;
  for (std::size_t r = 0; r < times.ranks.size(); ++r) places[times.ranks[r]] = r;
  for (const run::Rank& rank : run.ranks) {
    const auto place = places.find(rank.process);
    if (place == places.end()) continue;
    const std::size_t r = place->second;
    std::vector<StepOfRank> steps;
    for (const run::Step& step : rank.steps) {
      const auto kept = std::ranges::lower_bound(times.steps, step.number);
      if (kept == times.steps.end() || *kept != step.number) continue;
      const auto s = static_cast<std::size_t>(kept - times.steps.begin());
      steps.push_back(
          {&step, &times.cells[r * times.steps.size() + s], s > 0 || times.steps.size() < 3});
    }
    fill_cells(rank, found.how == steps::How::mark, steps, times.facts[r]);
  }
  leave_out_unknown(times);
  find_usual(times);
  if (!times.counted().empty()) return times;
  const auto computes = [](const run::Rank& rank) {
    return !rank.work.empty() ||
           std::ranges::any_of(rank.calls.is, [](const run::Is& is) { return is.launch; });
  };
  if (std::ranges::none_of(run.ranks, computes)) {
    times.why = "no kernel of the program was seen on the devices";
    return times;
  }
  times.why =
      "there are no two consecutive steps with device times of all ranks (this needs "
      "TPROF_TIMING=events for all calls, lines of all ranks, windows of at least two steps)";
  return times;
}

}  // namespace tprof::why
