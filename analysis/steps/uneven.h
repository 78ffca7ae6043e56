// Finds steps that reduce the same gradients, whatever else they do. If they have different numbers
// of micro-batches, what lies between the last reductions of two steps differs.
#pragma once

#include <optional>

#include "steps/anchor.h"

namespace tprof::steps {

// True if twice as much is reduced between some occurrences as between two others: a step is
// missing.
bool holds_two(const Order& text, const Anchor& a);

struct Uneven {
  Anchor anchor;
  std::size_t start = 0;  // of the first step
  // True if the calls of a micro-batch show that it is not part of an evaluation: it also gathers
  // for its backward pass, or reduces activations there. If it only brings in a batch, nothing
  // shows it.
  bool told = false;
  bool mostly_alike = false;  // at least half of the steps are
};

// Returns the last reduction of each step, from the order of reductions on one communicator alone.
// That order repeats from the beginning to the end, but the first step may make its buckets anew
// (DDP). A batch comes in for each step. Besides its gradients, a step calls what some number of
// micro-batches do.
std::optional<Uneven> find_uneven(const Order& text);

}  // namespace tprof::steps
