// Finds the steps of pipelines from what their stages send each other.
//
// Each stage alone says where nothing was under way. In 1F1B that is so after each step at the
// first stages, and after each micro-batch at the last one. But the messages between two stages are
// the same at both ends: where one has sent 160 when a step begins, the other has received 160. So
// one stage that tells its steps tells those of all.
#pragma once

#include <vector>

#include "steps/rank_steps.h"

namespace tprof::steps {

// Gives steps to the ranks that have a flow, or says why it can't where there are none so far.
void find_in_pipelines(std::vector<RankSteps>& ranks);

}  // namespace tprof::steps
