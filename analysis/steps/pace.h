// Finds the hosts that go as fast as the job.
#pragma once

#include <set>

#include "steps/found.h"

namespace tprof::steps {

// All ranks of a job make a step in the same time, but a host may enqueue many of them ahead of its
// device: where devices were not timed, its steps say nothing. Returns the ranks whose hosts take
// about as long as the slowest. Their longest step does not count: one rank may pause alone.
std::set<const read::Process*> in_pace(const Found& found);

}  // namespace tprof::steps
