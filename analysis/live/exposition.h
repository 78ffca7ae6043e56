// What ranks have counted so far, as Prometheus takes it.
#pragma once

#include <string>
#include <vector>

#include "live/rank.h"

namespace tprof::live {

// Text exposition format, version 0.0.4.
std::string exposition(const std::vector<Rank>& ranks);

}  // namespace tprof::live
