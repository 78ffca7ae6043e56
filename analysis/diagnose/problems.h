// What is missing, incomplete or contradictory in the traces of a job, as far as the ledgers tell.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/completeness.h"
#include "diagnose/problem.h"
#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::diagnose {

// `skipped`: files that lay beside the job's and are not of it. `whole_job`: false where only the
// processes of one host were looked at, so that the others are not missing.
std::vector<Problem> problems(const match::Job& job, const std::vector<read::Skipped>& skipped,
                              bool whole_job);

// The worst first, and of each kind so few that they can be read.
void tidy(std::vector<Problem>& problems);

}  // namespace tprof::diagnose
