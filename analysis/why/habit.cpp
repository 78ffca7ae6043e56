#include "why/habit.h"

#include <cmath>

namespace tprof::why {

void tell(const Evidence& e, check::Kind kind, const Saving& saving, check::Values values,
          check::Findings& found) {
  if (saving.ns < kLeastShare * e.step_ns || saving.ns <= saving.doubt) return;
  values.emplace_back("share", check::Percent{100 * saving.ns / e.step_ns});
  values.emplace_back("saves", check::Ns{std::llround(saving.ns)});
  check::Finding& f = add(found, kind, e.times.ranks, std::move(values));
  f.cost = cost_of(e, saving.ns, saving.doubt);
}

}  // namespace tprof::why
