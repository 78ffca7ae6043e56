// The first lines of the summary: what ran, where, on which libraries.
#pragma once

#include <string>

#include "match/jobs.h"

namespace tprof::report {

std::string header_text(const match::Job& job);

}  // namespace tprof::report
