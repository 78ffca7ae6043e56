// Finds which ranks do the same: the roles in a job, and the stages of its pipelines.
#pragma once

#include <vector>

#include "why/cause.h"

namespace tprof::why {

// By rank of the run: its index in Times::ranks; SIZE_MAX: none.
Places ranks_of_run(const Evidence& e);

// Returns the ranks of each stage: communicators whose ranks are all in different pipelines, joined
// if they share ranks. (The first and last stage may have a communicator too, for shared weights.)
// Empty: the job has no pipeline.
std::vector<Places> stages_of(const Evidence& e);

// By rank: its role. Ranks have the same one if they share at least half of their NCCL calls, by
// function and size of the communicator, or a pipeline. Trainers and generators have different
// ones: what each computes can't be compared.
Places roles_of(const Evidence& e);

}  // namespace tprof::why
