// Chooses the job that a command is about, if the traces are of several.
#pragma once

#include <string>
#include <vector>

#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::job {

std::vector<const read::Process*> processes_of(const read::Traces& traces);

// Says which job a command is about, if the traces are of several.
struct Choice {
  std::string run;  // its run id, or the name that tprof gave it; empty: the last to start
  int attempt = 0;  // of that run, from 1; 0: the last
};

// Throws BadInput if there is none.
Job one_job(const read::Traces& traces, const Choice& choice);

}  // namespace tprof::job
