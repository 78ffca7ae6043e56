// Numbers of steps that the program marks: they may begin again, as with each epoch.
#pragma once

#include <map>
#include <vector>

#include "steps/found.h"

namespace tprof::steps {

using Ranks = std::map<const read::Process*, std::vector<Interval>>;

// Where numbers begin again on some rank: they are counted on, so that each step has its own, the
// same on all ranks. False: they don't. Intervals are in the order of time.
bool count_on(Ranks& ranks);

}  // namespace tprof::steps
