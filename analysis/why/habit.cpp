#include "why/habit.h"

#include <algorithm>
#include <cmath>

namespace tprof::why {

using diagnose::Finding;
using diagnose::Findings;
using diagnose::Kind;
using diagnose::Ns;
using diagnose::Percent;

read::Amounts moved(const read::Process& rank, Bucket bucket) {
  read::Amounts all;
  for (const read::Row& row : read::rows_of(rank)) {
    if (row.bucket == bucket) all += row.amounts;
  }
  return all;
}

double within_hosts_spare(const Evidence& e, double ns) {
  std::vector<double> of_ranks;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    std::vector<double> gained;
    for (const std::size_t s : e.steps) {
      gained.push_back(std::min(ns, static_cast<double>(e.times.of(r)[s].spare)));
    }
    of_ranks.push_back(mean(gained));
  }
  return quantile(std::move(of_ranks), 0.05);
}

void tell(const Evidence& e, Kind kind, double ns, diagnose::Values values, Findings& found) {
  if (ns < kLeastShare * e.step_ns) return;
  values.emplace_back("share", Percent{100 * ns / e.step_ns});
  values.emplace_back("saves", Ns{std::llround(ns)});
  Finding& f = add(found, kind, e.times.ranks, std::move(values));
  f.cost = cost_of(e, ns, ns / 4);
}

void tell_exposed(const Evidence& e, Kind kind, double ns, diagnose::Values values,
                  Findings& found) {
  const double beyond_hosts = within_hosts_spare(e, ns);
  values.emplace_back("exposed", Percent{100 * ns / e.step_ns});
  const bool less = beyond_hosts < 0.99 * ns;
  values.emplace_back("beyond_hosts",
                      less ? std::optional(Percent{100 * beyond_hosts / e.step_ns}) : std::nullopt);
  tell(e, kind, beyond_hosts, std::move(values), found);
}

}  // namespace tprof::why
