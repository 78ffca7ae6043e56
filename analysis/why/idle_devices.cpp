// Devices are idle in every step, as their hosts don't launch work in time. The others wait for
// them.
#include <algorithm>

#include "why/causes.h"
#include "why/idle.h"
#include "why/numbers.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

using check::Kind;
using check::Ns;
using check::Percent;

// Returns the cost of the copies that hosts wait for, in ns.
double told(const check::Findings& found) {
  double ns = 0;
  for (const check::Finding& f : found) {
    const bool copies = f.kind == Kind::blocking_h2d || f.kind == Kind::blocking_d2h;
    if (copies && f.cost) ns += static_cast<double>(f.cost->ns_per_step.value_or(0));
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

// Ranks whose devices stand idle in a step for half of what would be saved, or longer. The others
// wait for them.
Places who_idle(const Evidence& e, double ns) {
  Places who = every_rank(e);
  std::erase_if(who, [&](std::size_t r) {
    double idle = 0;
    for (const std::size_t s : e.steps) idle += e.times.of(r)[s].idle();
    return 2 * idle < ns * static_cast<double>(e.steps.size());
  });
  return who.empty() ? every_rank(e) : who;
}

}  // namespace

void idle_devices(const Evidence& e, check::Findings& found) {
  if (e.replays == nullptr || e.steps.size() < 4) return;
  // Slow ranks may explain some of the idle time.
  const Slow hosts{.ranks = every_rank(e), .of = Of::host, .alone = true};
  const std::vector<double> saved = e.replays->saves_in_steps(hosts);
  // The median keeps out a few long steps, the mean a few short ones.
  const auto usual = [](const std::vector<double>& of) { return std::min(median(of), mean(of)); };
  const double ns = std::min(usual(saved), usual(e.replays->saves_alone(hosts))) - told(found);
  if (ns < kLeastIdle * e.step_ns) return;
  const Places who = who_idle(e, ns);
  check::Finding& f = add(found, Kind::idle_devices, processes_of(e, who),
                          {{"share", Percent{100 * ns / e.step_ns}},
                           {"saves", Ns{std::llround(ns)}},
                           {"one", who.size() == 1},
                           {"all", who.size() == e.times.ranks.size()},
                           {"loads", mostly_leads(more_idle(e, every_rank(e), every_step(e)))},
                           {"reads", reads(e)}});
  f.cost = cost_of(e, ns, 2 * mean_error(saved));
}

}  // namespace tprof::why
