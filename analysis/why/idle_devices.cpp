// Devices of all ranks that stand idle in every step: their hosts don't bring them work in time.
#include "why/causes.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

using diagnose::Kind;
using diagnose::Ns;
using diagnose::Percent;

constexpr double kLeastIdle = 0.05;  // of a step: launches have gaps in healthy jobs, too

// The share of the usual step, of the rank that has least of it: more is a rank's own, and the
// stages of a pipeline have nothing to do at different times.
template <typename Of>
double of_all_ranks(const Evidence& e, Of&& of) {
  std::vector<double> each;
  for (const std::size_t step : e.steps) {
    double least = 1;
    for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
      least = std::min<double>(least, of(r, step) / e.times.of(r)[step].length);
    }
    each.push_back(std::max(least, 0.0));
  }
  return median(std::move(each));
}

// Returns what other findings have of hosts that come late, in ns.
double told(const diagnose::Findings& found) {
  double ns = 0;
  for (const diagnose::Finding& f : found) {
    const bool of_hosts = f.kind == Kind::blocking_h2d || f.kind == Kind::blocking_d2h ||
                          f.kind == Kind::slow_input || f.kind == Kind::slow_cpu;
    if (of_hosts && f.cost) ns += static_cast<double>(f.cost->ns_per_step.value_or(0));
  }
  return ns;
}

// True if a rank reads something from its device in most steps.
bool reads(const Evidence& e) {
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    std::vector<double> bytes;
    for (const std::size_t s : e.steps) bytes.push_back(e.times.of(r)[s].to_host);
    if (median(std::move(bytes)) > 0) return true;
  }
  return false;
}

}  // namespace

void idle_devices(const Evidence& e, diagnose::Findings& found) {
  if (e.steps.size() < 4) return;
  const Times& t = e.times;
  // Without its own computation and transfers. A rank that waits for others, while its host is as
  // slow as theirs, would stand idle instead.
  const double idle = of_all_ranks(e, [&](std::size_t r, std::size_t step) {
    const Cell& c = t.of(r)[step];
    const double computed = (t.computed(r, step) + c.compute + c.unsure) / 2;
    return t.own(r, step) - computed - (c.exposed - t.held_up(r, step));
  });
  const double lead =
      of_all_ranks(e, [&](std::size_t r, std::size_t step) { return t.of(r)[step].lead; });
  const double ns = idle * e.step_ns - told(found);
  if (ns < kLeastIdle * e.step_ns) return;
  diagnose::Finding& f = add(found, Kind::idle_devices, e.times.ranks,
                             {{"share", Percent{100 * ns / e.step_ns}},
                              {"saves", Ns{std::llround(ns)}},
                              {"one", e.times.ranks.size() == 1},
                              {"loads", lead * 2 > idle},
                              {"reads", reads(e)}});
  f.cost = cost_of(e, ns, ns / 4);
}

}  // namespace tprof::why
