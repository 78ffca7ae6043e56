// In which steps ranks came late.
#pragma once

#include "diagnose/lateness.h"
#include "job/jobs.h"
#include "read/folder.h"
#include "steps/found.h"

namespace tprof::stats {

// Of the latest arrivals: the step in which the rank called. Reads the lines again.
void add_steps(diagnose::Lateness& lateness, const job::Job& job, const read::Traces& traces,
               const steps::Found& found);

}  // namespace tprof::stats
