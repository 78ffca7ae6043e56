// Divides what a stage of a pipeline calls between its last message of a step and the first of the
// next.
#pragma once

#include <cstddef>
#include <vector>

#include "steps/sequence.h"

namespace tprof::steps {

struct Gap {
  std::size_t from = 0;  // the operation behind the last message
  std::size_t to = 0;    // the next message, or the end
  std::size_t cut = 0;   // the first operation of the next step
};

// Sets the cut of each: losses and norms belong to the step before, batches to the one behind, and
// other calls to where the first and the last step have them. `steps`: the gaps where steps begin,
// then the one where the last ends. Returns whether a small reduction is in all of them.
bool cut_gaps(const Sequence& sequence, std::vector<Gap>& gaps,
              const std::vector<std::size_t>& steps, bool closed);

}  // namespace tprof::steps
