// The first lines of the summary: what ran, where, on which libraries.
#pragma once

#include <string>
#include <vector>

#include "job/jobs.h"

namespace tprof::report {

std::string header_text(const match::Job& job);

// "4 processes"; "4 ranks in 1 process", where one holds several.
std::string how_many(const std::vector<const read::Process*>& processes);

}  // namespace tprof::report
