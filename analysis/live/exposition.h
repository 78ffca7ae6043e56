// The counts of ranks so far, as Prometheus takes them.
#pragma once

#include <string>
#include <vector>

#include "live/rank.h"

namespace tprof::live {

// Returns the text exposition format, version 0.0.4.
std::string exposition(const std::vector<Rank>& ranks);

}  // namespace tprof::live
