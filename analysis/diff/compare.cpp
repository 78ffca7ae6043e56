// Collects what is compared of a run, and compares what two runs were started with.
#include "diff/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "check/started.h"
#include "steps/found.h"
#include "summary/summary.h"
#include "why/cause.h"
#include "why/why.h"

namespace tprof::diff {

namespace {

using About = Setting::About;
using Values = std::map<std::pair<About, std::string>, std::set<std::string>>;

// Returns all values of the processes.
Values values_of(const Run& run) {
  Values all;
  const auto add = [&](About about, const char* what, const std::string& value) {
    if (!value.empty()) all[{about, what}].insert(value);
  };
  for (const check::Started& s : check::started_with(run.job->processes)) {
    using From = check::Started::About;
    const bool variable = s.about == From::config || s.about == From::env;
    const bool the_runs_own = s.name == "TPROF_OUTPUT_DIR" || s.name == "TPROF_RUN_ID";
    if (the_runs_own) continue;
    for (const auto& [value, processes] : s.values) {
      add(variable ? About::setting : About::version, s.name.c_str(), value);
    }
  }
  for (const read::Process* p : run.job->processes) {
    add(About::setting, "command", p->header.command);
    add(About::host, "hosts", p->header.host);
  }
  const auto hosts = all[{About::host, "hosts"}].size();
  add(About::size, "number of hosts", std::to_string(hosts));
  add(About::size, "ranks", std::to_string(run.ranks));
  if (run.steps_seen != 0) add(About::size, "steps", std::to_string(run.steps_seen));
  return all;
}

std::string joined(const std::set<std::string>& values) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> some(values.begin(), values.end());
  if (some.size() <= kMost) return fmt::format("{}", fmt::join(some, ", "));
  some.resize(kMost);
  return fmt::format("{} and {} more", fmt::join(some, ", "), values.size() - kMost);
}

void compare_settings(const Run& a, const Run& b, Diff& to) {
  Values of_a = values_of(a);
  Values of_b = values_of(b);
  for (const auto& [key, values] : of_a) of_b[key];
  for (const auto& [key, values] : of_b) {
    if (of_a[key] == values) continue;
    to.settings.push_back({key.first, key.second, joined(of_a[key]), joined(values)});
  }
}

// Adds the lengths on the devices to those on the hosts, which run ahead until they wait.
void put_lengths(const why::Times& times, tables::CallsBySteps& all) {
  for (const std::size_t s : times.counted()) {
    const auto step = all.find(times.steps[s]);
    if (step != all.end()) step->second.device_ns = times.length(s);
  }
}

// Returns the steps that all ranks made, without the first.
std::vector<Step> comparable(tables::CallsBySteps all, std::int64_t first, bool by_devices) {
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
    steps.push_back({std::move(step)});
  }
  return steps;
}

void put_parts(const why::Times& times, Run& run) {
  for (Step& step : run.steps) {
    const auto at = std::ranges::lower_bound(times.steps, step.step) - times.steps.begin();
    step.parts = why::mean_of(times, {static_cast<std::size_t>(at)});
  }
  double unmet = 0;
  double waiting = 0;
  for (const why::RankFacts& rank : times.facts) unmet += static_cast<double>(rank.unmet_ns);
  for (const why::Cell& cell : times.cells) waiting += cell.wait;
  run.unmet_share = waiting > 0 ? unmet / waiting : 0;
}

}  // namespace

Diff compare(const Run& a, const Run& b) {
  std::error_code none;
  Diff d;
  d.same_traces = std::filesystem::equivalent(a.path, b.path, none);
  for (const auto& [run, name] : {std::pair(&a, "A"), std::pair(&b, "B")}) {
    if (!run->job->beside.empty()) {
      d.notes.push_back(fmt::format("{}: {}", name, run->job->beside));
    }
    for (const read::Skipped& s : run->unreadable) {
      d.notes.push_back(fmt::format("{}: {}", name, s.reason));
    }
    if (run->ended) continue;
    d.notes.push_back(fmt::format("{} did not end, or is incomplete: see tprof check", name));
  }
  compare_counts(a, b, d);
  compare_times(a, b, d);
  compare_slow_ranks(a, b, d);
  compare_settings(a, b, d);
  return d;
}

Run look_at(const filter::Selection& asked, const check::Findings& findings,
            const std::string& path, bool with_lines) {
  const job::Job& job = asked.job();
  const run::Lines lines = asked.lines();
  const tables::Summary summary = tables::summarise(lines, {.asked = &asked, .findings = findings});
  Run run{.path = path, .job = &job, .ranks = job.ranks.size(), .ended = summary.complete};
  run.only = asked.words();
  run.notes = asked.notes();
  run.world = job.world_size.value_or(static_cast<std::int64_t>(job.ranks.size()));
  const tables::OpKinds kinds(run.world, summary.comms);
  for (const read::Process* p : job.processes) {
    run.ended = run.ended && p->end == read::End::closed;
    tables::each_row(lines.rows(*p), [&](const read::Row& row) {
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
  tables::CallsBySteps by_number = tables::step_calls(lines, found, kinds);
  run::Run calls = why::run_of(lines, found);
  const why::Times times = why::times_of(calls, job, found);
  run.by_devices = times.known();
  if (run.by_devices) put_lengths(times, by_number);
  if (run.by_devices && run.only.sentence().empty()) {
    run.slow_ranks = why::ranks_that_hold_up(lines, found, std::move(calls), times);
  }
  if (const auto& only = asked.filter().steps) {
    std::erase_if(by_number, [&](const auto& step) { return !only->holds(step.first); });
  }
  run.steps = comparable(std::move(by_number), found.steps.front(), run.by_devices);
  if (run.by_devices) put_parts(times, run);
  return run;
}

// Finds ranks that hold up the others in only one of two runs. Any busy machine has such ranks in a
// few steps without a pattern: these are reported only if they are no chance.

namespace {

using check::Finding;
using check::Findings;
using check::Kind;

// True if its steps are n > 1 apart, apart from gaps, in which another rank may have been later.
// Chance gives each step in one of n cases.
bool is_pattern(const Finding& f) {
  constexpr double kNoChance = 1000;
  std::int64_t n = 0;
  const std::vector<std::int64_t> steps = f.in_steps.list();
  for (const std::int64_t step : steps) n = std::gcd(n, step - steps.front());
  return n > 1 && std::pow(n, steps.size() - 1) >= kNoChance;
}

// Which steps a rank is slow in.
enum class When { always, every_nth, now_and_then };
When when(const Finding& f) {
  if (!f.steps) return When::always;
  if (f.kind == Kind::long_steps) return When::now_and_then;
  return check::has_value(f.text.values, "period") || is_pattern(f) ? When::every_nth
                                                                    : When::now_and_then;
}

// Its cost per step. `doubts`: 1 for the upper bound, -1 for the lower.
double ns_of(const Finding& f, double doubts) {
  const double per_step = static_cast<double>(f.cost->ns_per_step.value_or(0));
  const double in_run = static_cast<double>(std::max<std::int64_t>(f.cost->ns, 1));
  return per_step * (1 + doubts * static_cast<double>(f.cost->doubt_ns) / in_run);
}

// The same pause of a host may appear before the first kernel, after it, or as a long step.
bool alike(const Finding& a, const Finding& b) {
  if (!why::is_slow_rank(a.kind) || !why::is_slow_rank(b.kind)) return true;
  return (a.kind == Kind::slow_gpu) == (b.kind == Kind::slow_gpu);
}

// True if `other`, from the other run, is the same or worse.
bool covers(const Finding& other, const Finding& f) {
  text::Ranks both = other.ranks;
  both.add(f.ranks);
  if (!alike(other, f) || both != other.ranks) return false;
  if (when(f) != When::now_and_then && when(f) == when(other)) return true;
  return ns_of(other, 1) >= ns_of(f, -1);
}

// Returns in how many steps its ranks are known to hold up the others; at least one for long steps.
std::uint64_t steps_of(const Finding& f) {
  return why::is_slow_rank(f.kind) ? f.in_steps.size() : 1;
}

// True if its ranks are slow more often than chance would make any rank of the other run. Rare
// events vary by the square root of their number.
bool more_often(const Finding& f, const Run& in, const Run& other) {
  constexpr double kDeviations = 3;
  std::uint64_t by_chance = 0;
  for (const Finding& o : *other.slow_ranks) {
    if (when(o) == When::now_and_then) by_chance = std::max(by_chance, steps_of(o));
  }
  const auto steps = static_cast<double>(in.steps.size());
  const auto others = static_cast<double>(other.steps.size());
  const double share = static_cast<double>(steps_of(f)) / steps;
  const double least = static_cast<double>(by_chance) / others;
  return share - least > kDeviations * std::sqrt(share / steps + least / others);
}

// True if most of its steps are far longer than any of the other run.
bool far_longer(const Finding& f, const Lengths& steps) {
  if (when(f) != When::now_and_then) return false;
  const auto far = static_cast<std::uint64_t>(
      std::ranges::count_if(steps.far, [&](auto number) { return f.in_steps.contains(number); }));
  return far != 0 && far * 2 >= steps_of(f);
}

}  // namespace

void compare_slow_ranks(const Run& a, const Run& b, Diff& to) {
  if (!a.slow_ranks || !b.slow_ranks || !to.no_times.empty() || to.times.empty()) return;
  to.slow_ranks.emplace();
  for (const bool in_b : {true, false}) {
    const Run& in = in_b ? b : a;
    const Run& other = in_b ? a : b;
    for (const Finding& f : *in.slow_ranks) {
      if (!f.cost) continue;
      const bool both = std::ranges::any_of(
          *other.slow_ranks, [&](const Finding& o) { return o.cost && covers(o, f); });
      const bool chance = when(f) == When::now_and_then &&
                          !(more_often(f, in, other) && ns_of(f, -1) > to.times[0].noise);
      if ((both || chance) && !far_longer(f, in_b ? to.lengths_b : to.lengths_a)) continue;
      to.slow_ranks->push_back({in_b, f});
    }
  }
}

}  // namespace tprof::diff
