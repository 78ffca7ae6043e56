// Steps of one rank, found from the order of what it called.
//
// A step takes a batch and reduces each gradient that recurs once. All ranks of a communicator see
// the same gradients on it, in the same order, which is the same in each step. So steps are looked
// for on each communicator by itself: where its gradients repeat, and where batches come in
// between. That of which a step has the most tells, as activations of layers are reduced too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "steps/cuts.h"
#include "steps/sequence.h"

namespace tprof::steps {

struct Period {
  // Index of the first operation of each step, then of the first one after the last step. Empty if
  // none were found: then `why` says why, in a sentence without its full stop.
  std::vector<std::size_t> starts{};
  // Index of the last gradient reduction of each step, on each communicator that shows these steps.
  // It is the same operation on all ranks of its communicator, with the same number there.
  std::vector<std::vector<std::size_t>> anchors{};
  // True if each is proved to be a whole step, and not one micro-batch of several.
  bool whole_steps = false;
  bool uneven = false;            // see Cuts
  std::uint64_t batch_bytes = 0;  // that come in for a step at least; 0: batches told nothing
  bool few = false;               // no steps are given, since too few are alike
  // Gradients were reduced before the first step, or after the last, in no order that was found
  // again. There may be steps there that are not counted.
  bool unclear_beginning = false;
  bool unclear_end = false;
  std::string why{};
};

// Why steps are not given though the calls repeat so many times: they are fewer than kFewestSteps.
std::string too_few_repeats(std::size_t n);

// `closed`: the program came to its end, and so did the last step.
Period find_period(const Sequence& sequence, bool closed);

}  // namespace tprof::steps
