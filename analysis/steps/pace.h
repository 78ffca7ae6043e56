// Finds the hosts that go as fast as the job, and whether they may go faster.
#pragma once

#include <set>

#include "steps/found.h"

namespace tprof::steps {

// All ranks of a job make a step in the same time, but a host may enqueue many of them ahead of its
// device: where devices were not timed, its steps say nothing. Returns the ranks whose hosts take
// about as long as the slowest. Their longest step does not count: one rank may pause alone.
std::set<const read::Process*> in_pace(const Found& found);

// A host runs ahead of its device until it waits for it: then one step has the time of many. It
// waits where it reads a value. Returns true if some rank reads none in some of its steps, so that
// its host may run ahead in them.
bool may_run_ahead(const Found& found);

}  // namespace tprof::steps
