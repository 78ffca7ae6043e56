// When a rank's device computed, communicated and had to wait in its steps.
#pragma once

#include <vector>

#include "run/run.h"
#include "why/times.h"

namespace tprof::why {

struct StepOfRank {
  const run::Step* step;
  Cell* cell;
  bool counts;
};

// Fills the cells of a rank's steps, which are ascending. `marked`: the program marks its steps.
void fill_cells(const run::Rank& rank, bool marked, const std::vector<StepOfRank>& steps,
                RankFacts& facts);

}  // namespace tprof::why
