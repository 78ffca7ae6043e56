// The stages of a job's pipelines.
#pragma once

#include <vector>

#include "why/cause.h"

namespace tprof::why {

// By rank of the run: its place in the evidence; SIZE_MAX: it has none.
Places ranks_of_run(const Evidence& e);

// The ranks of each stage of a pipeline: those of communicators of which each rank is of another
// pipeline, with all that have ranks in common. (The first and the last stage may have one as well,
// for weights that they share.) None: the job has no pipeline.
std::vector<Places> stages_of(const Evidence& e);

}  // namespace tprof::why
