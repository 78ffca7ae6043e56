#include "why/habit.h"

#include <cmath>

namespace tprof::why {

void tell(const Evidence& e, check::Kind kind, const Saving& saving, check::Values values,
          check::Findings& found, const Places& who) {
  if (saving.ns < kLeastShare * e.step_ns || saving.ns <= saving.doubt) return;
  values.emplace_back("share", check::Percent{100 * saving.ns / e.step_ns});
  values.emplace_back("saves", check::Ns{std::llround(saving.ns)});
  const check::Processes ranks = processes_of(e, who);
  const bool all = who.size() == e.times.ranks.size();
  values.emplace_back("who", all ? std::nullopt : std::optional(check::Who(ranks)));
  check::Finding& f = add(found, kind, ranks, std::move(values));
  f.cost = cost_of(e, saving.ns, saving.doubt);
}

void tell(const Evidence& e, check::Kind kind, const Saving& saving, check::Values values,
          check::Findings& found) {
  tell(e, kind, saving, std::move(values), found, every_rank(e));
}

}  // namespace tprof::why
