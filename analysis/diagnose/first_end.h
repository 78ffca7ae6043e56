// Who of a job ended first: a launcher ends the other ranks when one has.
#pragma once

#include <optional>
#include <string>

#include "diagnose/line_facts.h"
#include "diagnose/problem.h"
#include "job/jobs.h"

namespace tprof::diagnose {

// Says it in the first finding about ranks that ended or did not close. Nothing where all closed,
// or where nothing tells one rank's end from another's.
void name_who_ended_first(const match::Job& job, const Facts& facts, std::vector<Problem>& found);

}  // namespace tprof::diagnose
