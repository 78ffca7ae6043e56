#include "page/page.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

#include "page/data.h"
#include "report/verdict.h"
#include "steps/found.h"

namespace tprof::page {
namespace {

constexpr std::size_t kLateShown = 16;  // ranks in a timeline because they are late

std::vector<std::optional<std::int64_t>> lengths_of(const why::Why& why,
                                                    const steps::Found& found) {
  std::vector<std::optional<std::int64_t>> all(found.steps.size());
  if (why.known()) {
    for (std::size_t s = 0; s < why.times->steps.size(); ++s) {
      const std::size_t at = place_of(found.steps, why.times->steps[s]);
      const double ns = why.times->length(s);
      if (at != all.size() && ns != 0) all[at] = std::llround(ns);
    }
    return all;
  }
  std::vector<std::pair<double, double>> sums(all.size());  // sums and counts
  for (const read::Process* rank : steps::in_pace(found)) {
    for (const steps::Interval& i : found.ranks.at(rank)) {
      const std::size_t at = place_of(found.steps, i.step);
      const std::int64_t ns = between(i.from_ns, i.to_ns);
      if (at == all.size() || ns < 0 || ns > read::kLatestNs || !i.end_known) continue;
      sums[at].first += static_cast<double>(ns);
      ++sums[at].second;
    }
  }
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (sums[at].second != 0) all[at] = std::llround(sums[at].first / sums[at].second);
  }
  return all;
}

// Returns ranks that others waited for, and an even choice of the rest.
std::vector<const read::Process*> to_show(const tables::Summary& s) {
  std::vector<const read::Process*> all;
  for (const read::Process* p : s.job->processes) {
    if (p->header.rank && s.found.ranks.contains(p)) all.push_back(p);
  }
  if (all.size() <= Timeline::kMostRanks) return all;
  std::set<const read::Process*> chosen;
  for (const check::LateRank& r : s.lateness->ranks) {
    if (chosen.size() >= kLateShown || r.sum_ns == 0) break;
    chosen.insert(r.rank);
  }
  const std::size_t others = Timeline::kMostRanks - chosen.size();
  for (std::size_t i = 0; i < others; ++i) chosen.insert(all[i * all.size() / others]);
  std::erase_if(all, [&](const read::Process* p) { return !chosen.contains(p); });
  return all;
}

// Returns a rank's steps on its device, or on its host without device times.
std::vector<steps::Interval> steps_of(const why::Why& why, const steps::Found& found,
                                      const read::Process* rank) {
  if (!why.known()) return found.ranks.at(rank);
  const std::vector<const read::Process*>& ranks = why.times->ranks;
  const auto at = std::ranges::find(ranks, rank);
  if (at == ranks.end()) return {};
  return why::on_device(*why.times, found, static_cast<std::size_t>(at - ranks.begin()));
}

Timeline timeline_of(const tables::Summary& s, const why::Why& why, std::string which,
                     std::int64_t step, std::int64_t length_ns) {
  Timeline t{.which = std::move(which),
             .step = step,
             .length_ns = length_ns,
             .on_device = why.known() || s.lateness->on_device};
  const auto in = [&](const std::vector<steps::Interval>& all) {
    const auto found = std::ranges::find(all, step, &steps::Interval::step);
    return found == all.end() ? std::optional<steps::Interval>() : *found;
  };
  for (const read::Process* rank : to_show(s)) {
    const auto called = in(s.found.ranks.at(rank));
    const auto shown = in(steps_of(why, s.found, rank));
    if (!called || !shown) continue;
    t.ranks.push_back(
        {.rank = rank, .called = *called, .from_ns = shown->from_ns, .to_ns = shown->to_ns});
  }
  return t;
}

// Finds the steps in which ranks came late, on the clock of the arrivals.
void put_in_steps(const why::Why& why, tables::Summary& s) {
  static const why::Why kHosts{};
  std::map<const read::Process*, std::vector<steps::Interval>> steps;
  for (check::LateArrival& call : s.lateness->arrivals) {
    if (!s.found.ranks.contains(call.rank)) continue;
    const auto [of, is_new] = steps.try_emplace(call.rank);
    if (is_new) of->second = steps_of(s.lateness->on_device ? why : kHosts, s.found, call.rank);
    if (const auto* in = steps::interval_at(of->second, call.ts_ns)) call.step = in->step;
  }
}

// A late rank has one finding: the one with a cost, if any.
void add_causes(Gathered& g) {
  check::Findings& all = g.said.findings;
  if (g.why.known()) {
    std::erase_if(all, [](const check::Finding& f) { return f.kind == check::Kind::late; });
  }
  all.insert(all.end(), g.why.findings.begin(), g.why.findings.end());
  std::ranges::stable_sort(all, std::ranges::greater(), [](const check::Finding& f) {
    return std::tuple(f.severity, report::notes_the_end(f), f.cost ? f.cost->ns : 0);
  });
}

// Collects the bars of a rank from its lines.
struct CallsOfStep {
  void end() {
    for (TimelineRank* step : wanted) keep_longest(*step);
  }

  static void keep_longest(TimelineRank& of) {
    if (of.bars.size() <= Timeline::kMostBars) return;
    std::ranges::nth_element(of.bars, of.bars.begin() + Timeline::kMostBars, std::ranges::greater(),
                             &Bar::dur_ns);
    of.left_out += of.bars.size() - Timeline::kMostBars;
    of.bars.resize(Timeline::kMostBars);
  }

  static bool runs_in(const TimelineRank& step, std::int64_t ts_ns, std::int64_t dur_ns) {
    return ts_ns < step.to_ns - unseen_ns(step) &&
           (ts_ns >= step.from_ns || ts_ns + dur_ns > step.from_ns);
  }

  void timed(const read::Event& e, const read::DeviceTime* t) {
    if (e.captured || e.failed) return;
    for (TimelineRank* step : wanted) {
      if (on_device && t == nullptr) {
        const steps::Interval& called = step->called;
        step->left_out += e.ts_ns >= called.from_ns && e.ts_ns < called.to_ns ? 1 : 0;
        continue;
      }
      const std::int64_t ts_ns = on_device ? t->ts_ns : e.ts_ns;
      const std::int64_t dur_ns = on_device ? t->dur_ns : e.dur_ns;
      if (!runs_in(*step, ts_ns, dur_ns)) continue;
      const read::Comm* comm = read::comm_of(rank, e.comm);
      step->bars.push_back({.name = e.name,
                            .bucket = e.bucket,
                            .communicator = comm == nullptr ? "" : std::string(comm->id),
                            .bytes = e.bytes,
                            .ts_ns = ts_ns,
                            .dur_ns = dur_ns});
      if (step->bars.size() >= 4 * Timeline::kMostBars) keep_longest(*step);
    }
  }

  const read::Process& rank;
  bool on_device;
  std::vector<TimelineRank*> wanted{};
};

// Fills the bars of all timelines, which use the same clocks, from the lines of their ranks.
void fill_bars(const run::Lines& lines, std::vector<Timeline>& timelines) {
  std::map<const read::Process*, std::vector<TimelineRank*>> by_rank;
  for (Timeline& t : timelines) {
    for (TimelineRank& r : t.ranks) by_rank[r.rank].push_back(&r);
  }
  if (by_rank.empty()) return;
  lines.each(
      [&](const read::Process& rank) {
        const auto wanted = by_rank.find(&rank);
        return wanted == by_rank.end()
                   ? std::nullopt
                   : std::optional(CallsOfStep{rank, timelines[0].on_device, wanted->second});
      },
      [](const CallsOfStep& /*the bars are already in place*/) {});
}

// The timelines of the slowest step and of a typical one.
void choose_steps(const run::Lines& lines, Gathered& g) {
  const tables::Summary& s = g.summary;
  g.lengths = lengths_of(g.why, s.found);
  const std::vector<std::size_t> warm = warm_steps(g);
  if (warm.empty() || !s.lateness) return;
  const auto show = [&](const char* which, std::size_t at) {
    g.timelines.push_back(timeline_of(s, g.why, which, s.found.steps[at], *g.lengths[at]));
  };
  show("slowest", warm.back());
  const std::size_t typical = warm[(warm.size() - 1) / 2];
  if (typical != warm.back()) show("typical", typical);
  fill_bars(lines, g.timelines);
}

}  // namespace

bool leaves_first_out(const Gathered& g) {
  return g.lengths.size() > 2;
}

std::vector<std::size_t> warm_steps(const Gathered& g) {
  std::vector<std::size_t> all(g.lengths.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (leaves_first_out(g)) all.erase(all.begin());
  std::erase_if(all, [&](std::size_t at) { return !g.lengths[at]; });
  std::ranges::stable_sort(all, {}, [&](std::size_t at) { return *g.lengths[at]; });
  return all;
}

void gather_calls(const filter::Selection& asked, Gathered& g) {
  const run::Lines lines = asked.lines();
  g.spectra = tables::spectra_of(lines);
  g.asked = tables::summarise(lines, {.asked = &asked, .findings = check::Findings()});
}

report::Known known_of(const Gathered& g) {
  report::Known known{.whole_steps = g.summary.found.whole_steps,
                      .timed = tables::sum(g.summary.buckets).device_timed != 0,
                      .why_not = g.why.known() ? "" : g.why.why_not(),
                      .looked_for = g.why.no_causes.empty()};
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (is_copy(static_cast<Bucket>(b))) known.copies += g.summary.buckets[b].calls;
  }
  // With device times the cost of lateness is known.
  if (g.summary.lateness && !g.why.known() && g.summary.job->only.empty())
    known.late = &*g.summary.lateness;
  const std::vector<std::size_t> warm = warm_steps(g);
  if (warm.empty()) return known;
  if (g.why.known()) known.exposed_share = g.why.mean.exposed / g.why.mean.length;
  double sum = 0;
  for (const std::size_t at : warm) sum += static_cast<double>(*g.lengths[at]);
  known.step_ns = std::llround(sum / static_cast<double>(warm.size()));
  return known;
}

void gather(const run::Lines& lines, Gathered& g) {
  g.summary = tables::summarise(lines, {.steps = true});
  {  // frees memory that is no longer needed
    const auto arrivals = std::make_shared<const check::Arrivals>(check::arrivals_of(lines));
    g.clocks = arrivals->clocks;
    g.summary.lateness = check::lateness_of(*arrivals, g.summary.found);
    g.said = check::diagnose(lines, {}, arrivals);
  }
  g.spectra = tables::spectra_of(lines);
  const std::string& only = lines.job().only;
  // Without other ranks it is still known what these did, but not who is to blame.
  const bool all_calls = !lines.job().some_calls;
  if (all_calls) why::find(lines, g.summary.found, g.why);
  if (!only.empty()) {
    const std::string why = "the trace was merged with " + only;
    if (!all_calls) g.why.times = why::Times{.why = why};
    g.why.no_causes = why;
    g.why.findings.clear();
    std::erase_if(g.said.findings, [](const auto& f) { return f.kind == check::Kind::late; });
  }
  choose_steps(lines, g);
  add_causes(g);
  put_in_steps(g.why, g.summary);
}

}  // namespace tprof::page
