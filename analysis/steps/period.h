// Steps of one rank, found from the order of what it called.
//
// A step reduces gradients, and its last reduction is the same operation in each. So the operations
// between two occurrences of it are the same for most steps. Something else may lie between some of
// them (an evaluation, a checkpoint), and the first and the last step need not be like the others.
// The border between two steps follows from where the program did something else, or ended.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "steps/sequence.h"

namespace tprof::steps {

struct Period {
  // Index of the first operation of each step, then of the first one after the last step. Empty if
  // none were found: then `why` says why, in a sentence without its full stop.
  std::vector<std::size_t> starts;
  // Index of the last gradient reduction of each step. It is the same operation on all ranks of its
  // communicator, with the same number there. The first may be another one.
  std::vector<std::size_t> anchors;
  // True if each is proved to be a whole step, and not one micro-batch of several.
  bool whole_steps = false;
  // True if more batches come in for some than for others. Nothing tells whether these are
  // micro-batches of a step or of an evaluation between two.
  bool uneven = false;
  bool few = false;  // no steps are given, since too few are alike
  // Gradients were reduced before the first step, or after the last, in no order that was found
  // again. There may be steps there that are not counted.
  bool unclear_beginning = false;
  bool unclear_end = false;
  std::string why;
};

// Why steps are not given though the calls repeat so many times: they are fewer than kFewestSteps.
std::string too_few_repeats(std::size_t n);

// `closed`: the program came to its end, and so did the last step.
Period find_period(const Sequence& sequence, bool closed);

}  // namespace tprof::steps
