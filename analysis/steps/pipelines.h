// Finds the steps of pipelines in the messages between their stages.
//
// Each stage alone shows where nothing was under way: in 1F1B after each step at the first stages,
// and after each micro-batch at the last one. But both ends of two stages count the same messages:
// if one has sent 160 when a step begins, the other has received 160. So one stage's steps give
// those of all.
#pragma once

#include <vector>

#include "steps/rank_steps.h"

namespace tprof::steps {

// Sets the steps of the ranks that have a flow, or says why there are none.
void find_in_pipelines(std::vector<RankSteps>& ranks);

}  // namespace tprof::steps
