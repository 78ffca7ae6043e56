// Chooses a command's job if there are several in the traces.
#pragma once

#include <string>
#include <vector>

#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::job {

std::vector<const read::Process*> processes_of(const read::Traces& traces);

// The user's choice of a job.
struct Choice {
  std::string run;  // its run id, or its name from tprof; empty: the last to start
  int attempt = 0;  // of that run, from 1; 0: the last
};

// Throws BadInput if there is none.
Job one_job(const read::Traces& traces, const Choice& choice);

}  // namespace tprof::job
