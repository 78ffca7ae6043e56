// Finds the steps of one rank in the order of its calls.
//
// A step takes a batch and reduces each gradient once. All ranks of a communicator see the same
// gradients in the same order in each step. So steps are searched on each communicator separately:
// where its gradients repeat, and where batches come in between. The communicator with the longest
// steps decides, since activations of layers are reduced too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "steps/cuts.h"
#include "steps/sequence.h"

namespace tprof::steps {

struct Period {
  // Index of the first operation of each step, then of the first one after the last step. If it is
  // empty, `why` says why in a sentence without a full stop.
  std::vector<std::size_t> starts{};
  // Index of the last gradient reduction of each step, on each communicator that shows these steps.
  // All ranks of a communicator have it there as the same operation with the same number.
  std::vector<std::vector<std::size_t>> anchors{};
  // True if each is proved to be a whole step and not a micro-batch.
  bool whole_steps = false;
  bool uneven = false;            // see Cuts
  std::uint64_t batch_bytes = 0;  // a step takes at least these; 0: batches were no help
  bool few = false;               // no steps are returned, since too few repeat
  // Gradients before the first step, or after the last, do not repeat: some steps may be missing
  // there.
  bool unclear_beginning = false;
  bool unclear_end = false;
  std::string why{};
};

// Says that n repeats are fewer than kFewestSteps.
std::string too_few_repeats(std::size_t n);

// `closed`: the program ran to its end, and so did the last step.
Period find_period(const Sequence& sequence, bool closed);

}  // namespace tprof::steps
