// Numbers steps that the program marks. The program's own numbers may begin again, for instance
// with each epoch.
#pragma once

#include <map>
#include <vector>

#include "steps/found.h"

namespace tprof::steps {

using Ranks = std::map<const read::Process*, std::vector<Interval>>;

// If numbers begin again on some rank, counts them on, so that each step has its own, the same on
// all ranks. Returns false if they don't. Intervals must be in the order of time.
bool count_on(Ranks& ranks);

}  // namespace tprof::steps
