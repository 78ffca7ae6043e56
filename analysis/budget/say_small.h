// Says what small calls are taken for, and where there are more of them than in a budget.
#pragma once

#include "budget/compare.h"

namespace tprof::budget {

// `several`: ranks moved different things, so those are named that a sentence is about.
void say_small_calls(Compared& c, const Budget& budget, bool several);

}  // namespace tprof::budget
