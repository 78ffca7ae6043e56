// The part of `tprof summary` about the steps of a job.
#pragma once

#include <string>

#include "report/findings.h"
#include "stats/steps.h"

namespace tprof::report {

std::string named(const stats::StepRange& steps);  // "10-", "3-7", "5"

// Returns how they were found, and what is not known about them: a sentence or more, each with its
// full stop.
std::string how_found(const steps::Found& found);

std::string step_table(const stats::StepTotals& totals, const steps::Found& found);

// Adds `steps` and `steps_found` of the contract, and what belongs to them.
void add_steps(nlohmann::ordered_json& to, const stats::StepTotals& totals,
               const steps::Found& found);

}  // namespace tprof::report
