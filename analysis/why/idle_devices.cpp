// Devices are idle in every step, as their hosts don't launch work in time. The others wait for
// them.
#include <algorithm>
#include <ranges>

#include "why/causes.h"
#include "why/idle.h"
#include "why/numbers.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

using check::Kind;
using check::Ns;
using check::Percent;

// The median keeps out a few long steps, the mean a few short ones.
double usual(const std::vector<double>& of) {
  return std::min(median(of), mean(of));
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

// Returns the fewest ranks that save nearly as much as all of them, those idle longest first.
Places who_idle(const Evidence& e, double all_ns) {
  const Places ranks = by_idle(e, every_rank(e));
  const auto n = std::views::iota(std::size_t{1}, ranks.size());
  const auto enough = std::ranges::partition_point(n, [&](std::size_t some) {
    const Slow hosts{.ranks = first_of(ranks, some), .of = Of::host, .alone = true};
    return usual(e.replays->saves_in_steps(hosts)) < all_ns - kUsualShare * e.step_ns;
  });
  // If most ranks are idle, it is the program.
  const bool most = enough == n.end() || 2 * *enough > ranks.size();
  return first_of(ranks, most ? ranks.size() : *enough);
}

}  // namespace

void idle_devices(const Evidence& e, check::Findings& found) {
  if (e.replays == nullptr || e.steps.size() < 4) return;
  // Slow ranks may explain some of the idle time.
  const Slow hosts{.ranks = every_rank(e), .of = Of::host, .alone = true};
  const std::vector<double> saved = e.replays->saves_in_steps(hosts);
  const double all_ns = usual(saved);
  const double ns = std::min(all_ns, usual(e.replays->saves_alone(hosts)));
  if (ns < kLeastIdle * e.step_ns) return;
  const Places who = who_idle(e, all_ns);
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
