// Whether what a process wrote agrees with itself: lines with the ledger, numbers without a gap,
// clocks and ledgers that only go forward.
#pragma once

#include <vector>

#include "diagnose/line_facts.h"
#include "diagnose/problem.h"

namespace tprof::diagnose {

// Each appends what it finds.
void lines_against_ledger(const match::Job& job, const Facts& facts, std::vector<Problem>& found);
void ledgers_that_decrease(const match::Job& job, const Facts& facts, std::vector<Problem>& found);
void clock_steps(const match::Job& job, const Facts& facts, std::vector<Problem>& found);

}  // namespace tprof::diagnose
