#include "page/gather.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>

#include "diagnose/ends.h"
#include "job/hosts.h"
#include "page/grid.h"
#include "steps/pace.h"

namespace tprof::page {
namespace {

constexpr std::size_t kLateShown = 16;  // ranks of a timeline that are there since they are late

// The first rank of the job counts among those whose steps are equally long: every process of a
// team has to take the same.
std::vector<StepLength> lengths_of(const job::Job& job, const steps::Found& found) {
  std::vector<StepLength> all(found.steps.size());
  const std::set<const read::Process*> paced = steps::in_pace(found);
  for (const read::Process* rank : job.processes) {
    const auto intervals = found.ranks.find(rank);
    if (intervals == found.ranks.end() || !paced.contains(rank)) continue;
    for (const steps::Interval& i : intervals->second) {
      const std::size_t at = place_of(found.steps, i.step);
      const std::int64_t ns = between(i.from_ns, i.to_ns);
      if (at == all.size() || ns < 0 || ns > read::kLatestNs || !i.end_known) continue;
      StepLength& length = all[at];
      length.sum_ns += ns;
      ++length.ranks;
      // The lowest rank of equally long ones: addresses would differ from run to run.
      const bool longer =
          ns > length.longest_ns || (ns == length.longest_ns && length.longest != nullptr &&
                                     rank->header.rank < length.longest->header.rank);
      if (!longer) continue;
      length.longest_ns = ns;
      length.longest = rank;
    }
  }
  return all;
}

// Ranks that were waited for, the one that had the longest step, and others evenly among the rest.
std::vector<const read::Process*> to_show(const stats::Summary& s, const StepLength& length) {
  std::vector<const read::Process*> all;
  for (const read::Process* p : s.job->processes) {
    if (p->header.rank && s.found.ranks.contains(p)) all.push_back(p);
  }
  if (all.size() <= stats::Timeline::kMostRanks) return all;
  std::set<const read::Process*> chosen{length.longest};
  for (const diagnose::LateRank& r : s.lateness->ranks) {
    if (chosen.size() >= kLateShown || r.sum_ns == 0) break;
    chosen.insert(r.rank);
  }
  const std::size_t others = stats::Timeline::kMostRanks - chosen.size();
  for (std::size_t i = 0; i < others; ++i) chosen.insert(all[i * all.size() / others]);
  std::erase_if(all, [&](const read::Process* p) { return !chosen.contains(p); });
  return all;
}

stats::Timeline timeline_of(const stats::Summary& s, const StepLength& length, std::string which,
                            std::int64_t step) {
  stats::Timeline t{.which = std::move(which), .step = step, .on_device = s.lateness->on_device};
  for (const read::Process* rank : to_show(s, length)) {
    const auto& intervals = s.found.ranks.at(rank);
    const auto in = std::ranges::find(intervals, t.step, &steps::Interval::step);
    if (in == intervals.end()) continue;
    t.ranks.push_back({.rank = rank, .from_ns = in->from_ns, .to_ns = in->to_ns});
  }
  return t;
}

// A rank that is late has one finding: the one that knows the cost, if there is one.
void add_causes(Gathered& g) {
  diagnose::Findings& all = g.said.findings;
  if (g.why.known()) {
    std::erase_if(all, [](const diagnose::Finding& f) { return f.kind == diagnose::Kind::late; });
  }
  all.insert(all.end(), g.why.findings.begin(), g.why.findings.end());
  std::ranges::stable_sort(all, std::ranges::greater(), [](const diagnose::Finding& f) {
    return std::pair(f.severity, f.cost ? f.cost->ns : 0);
  });
}

// Puts the lengths on the devices in place of those by the hosts, which run ahead until they wait.
void take_device_lengths(Gathered& g) {
  const why::Times& times = *g.why.times;
  for (StepLength& length : g.lengths) length.sum_ns = length.ranks = 0;
  for (const why::DeviceLength& of : why::lengths_of(times)) {
    const std::size_t at = place_of(g.summary.found.steps, of.step);
    if (at == g.lengths.size()) continue;
    StepLength& length = g.lengths[at];
    length.sum_ns = std::llround(of.sum_ns);
    length.longest_ns = std::llround(of.longest_ns);
    length.ranks = static_cast<std::int64_t>(times.ranks.size());
  }
}

}  // namespace

std::vector<std::size_t> warm_steps(const Gathered& g) {
  std::vector<std::size_t> all(g.lengths.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (all.size() > 2) all.erase(all.begin());
  std::erase_if(all, [&](std::size_t at) { return g.lengths[at].ranks == 0; });
  std::ranges::stable_sort(all, {}, [&](std::size_t at) { return g.lengths[at].mean_ns(); });
  return all;
}

void gather_calls(const filter::Selection& asked, const read::Traces& traces,
                  const std::function<void(std::size_t)>& progress, Gathered& g) {
  g.spectra.clear();
  g.asked = stats::summarise(
      asked.job(), traces,
      {.asked = &asked,
       .findings = diagnose::Findings(),
       .with_lines = [&](collect::Passes& passes,
                         const stats::Summary&) { stats::want_spectra(passes, g.spectra); },
       .progress = progress});
}

report::Known known_of(const Gathered& g) {
  report::Known known{.whole_steps = g.summary.found.whole_steps,
                      .timed = stats::sum(g.summary.buckets).device_timed != 0,
                      .causes = g.why.known()};
  // Where devices were followed, it is known what lateness costs.
  if (g.summary.lateness && !g.why.known()) known.late = &*g.summary.lateness;
  const std::vector<std::size_t> warm = warm_steps(g);
  if (warm.empty()) return known;
  if (g.why.known()) {  // its parts are those of the mean
    known.step_ns = std::llround(g.why.mean.length);
    known.exposed_share = g.why.mean.exposed / g.why.mean.length;
    return known;
  }
  double sum = 0;
  for (const std::size_t at : warm) sum += static_cast<double>(g.lengths[at].mean_ns());
  known.step_ns = std::llround(sum / static_cast<double>(warm.size()));
  return known;
}

void gather(const job::Job& job, const read::Traces& traces,
            const std::function<void(std::size_t)>& progress, Gathered& g) {
  const job::Hosts hosts(job);
  const diagnose::ArrivalReader arrivals = {
      .clocks = [&](const diagnose::HostClocks& c) { g.clocks = c.clocks; },
      .arrival =
          [&](const diagnose::LateArrival& a) {
            const std::int64_t axis_ns = a.realtime_ns - hosts.zero_ns();
            g.late.push_back({.rank = a.rank,
                              .communicator = a.communicator,
                              .ts_ns = axis_ns - hosts.on_axis(*a.rank, 0),
                              .late_ns = a.late_ns});
          }};
  const auto choose_steps = [&](collect::Passes& passes, const stats::Summary& s) {
    g.lengths = lengths_of(job, s.found);
    const std::vector<std::size_t> warm = warm_steps(g);
    if (warm.empty() || !s.lateness) return;
    const auto show = [&](const char* which, std::size_t at) {
      g.timelines.push_back(timeline_of(s, g.lengths[at], which, s.found.steps[at]));
    };
    show("slowest", warm.back());
    const std::size_t typical = warm[(warm.size() - 1) / 2];
    if (typical != warm.back()) show("typical", typical);
    stats::want_timelines(passes, g.timelines);
  };
  g.summary = stats::summarise(job, traces,
                               {.lateness = true,
                                .with_lines =
                                    [&](collect::Passes& passes, const stats::Summary& s) {
                                      stats::want_spectra(passes, g.spectra);
                                      diagnose::want(passes, {}, g.said);
                                      why::want(passes, s.found, g.why);
                                    },
                                .with_steps = choose_steps,
                                .arrivals = arrivals,
                                .progress = progress});
  if (g.why.known()) take_device_lengths(g);
  add_causes(g);
  for (LateCall& call : g.late) call.step = steps::step_at(g.summary.found, call.rank, call.ts_ns);
}

}  // namespace tprof::page
