// The output of `tprof replay`: a shell script, or JSON.
#pragma once

#include <string>

#include "job/jobs.h"
#include "replay/plan.h"

namespace tprof::replay {

struct Launch {
  bool mpi = false;  // one process for each rank, of programs built with MPI=1
};

std::string to_text(const job::Job& job, const Plan& plan, const Launch& launch,
                    std::size_t width = SIZE_MAX);
std::string to_json(const job::Job& job, const Plan& plan, const Launch& launch);

}  // namespace tprof::replay
